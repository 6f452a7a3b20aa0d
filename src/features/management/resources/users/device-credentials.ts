// `/device-credentials`: credentials on users' devices, which are registered public keys and refresh tokens.
import { z } from 'zod';
import type { RefreshTokenView } from '../../../../engine/session/refresh-directory.ts';
import type { Frozen } from '../../../../records/base/record.ts';
import type { ArtifactRecord } from '../../../../records/state/engine.ts';
import { sha256 } from '../../../../runtime/secrets.ts';
import { type Store, UniqueKeyError } from '../../../../store/contract.ts';
import { writeInTurn } from '../../../../store/write-in-turn.ts';
import { type Call, type Caller, callsWith, created, noContent, ok } from '../../call.ts';
import { arraySource, listAnswer, mapped, pageQuery } from '../../list.ts';
import { apiError } from '../../management-errors.ts';
import { fieldsQuery, selectFields } from '../../management-fields.ts';
import { conflict } from '../../resource.ts';
import type { SessionsDependencies } from './user-sessions-calls.ts';

const MODEL = 'DeviceCredential';

/** The highest number of credentials in a list, and of public keys of one user. */
const MAX_CREDENTIALS = { listed: 1000, keys: 20 };

type Artifact = Frozen<ArtifactRecord>;

const keyOf = (id: string): string => `${MODEL}:${id}`;

/**
 * Returns the id of a device's credential. It depends on user, client and device, so that of two concurrent
 * registrations one is refused.
 */
function idFor(userId: string, clientId: string, deviceId: string): string {
  const letters = sha256(JSON.stringify([userId, clientId, deviceId])).replaceAll(/[-_]/g, '');
  return `dcr_${letters.slice(0, 16)}`;
}

function publicKeyView({ id, payload }: Artifact) {
  const { accountId, clientId, device_name, device_id } = payload;
  return {
    id: id.slice(MODEL.length + 1),
    device_name,
    device_id,
    type: 'public_key',
    user_id: accountId,
    client_id: clientId,
  };
}

function refreshTokenView(token: RefreshTokenView) {
  return {
    id: token.id,
    ...(token.device === undefined ? {} : { device_name: token.device.initial_user_agent }),
    type: token.rotating ? 'rotating_refresh_token' : 'refresh_token',
    user_id: token.user_id,
    client_id: token.client_id,
  };
}

async function publicKeysOf(store: Store, userId: string | undefined): Promise<Artifact[]> {
  const artifacts = store.collection('artifacts');
  if (userId === undefined) {
    const where = { field: 'id', prefix: keyOf('') };
    return (await artifacts.list({ where, limit: MAX_CREDENTIALS.listed })).records;
  }
  return (await artifacts.findBy('account', userId)).filter(({ model }) => model === MODEL);
}

/** Refuses a user's token that is used for another user. @throws AuthError 403 */
function refuseOthers({ isUser, subject }: Caller, owner: unknown): void {
  if (isUser && owner !== subject)
    throw apiError(403, 'User to be acted on does not match subject in bearer token.');
}

const call = callsWith<SessionsDependencies>();

export const deviceCredentialCalls: Call<SessionsDependencies>[] = [
  call({
    method: 'GET',
    path: '/device-credentials',
    scopes: ['read:device_credentials'],
    summary: 'List device credentials',
    query: z.strictObject({
      ...pageQuery,
      ...fieldsQuery,
      user_id: z.string().max(255).optional(),
      client_id: z.string().max(255).optional(),
      type: z.enum(['public_key', 'refresh_token', 'rotating_refresh_token']).optional(),
    }),
    handle: async ({ store, refreshTokens }, { query }) => {
      const { user_id, client_id, type } = query;
      const tokens = await (user_id === undefined
        ? refreshTokens.list(MAX_CREDENTIALS.listed)
        : refreshTokens.of(user_id));
      const keys = (await publicKeysOf(store, user_id)).map(publicKeyView);
      const all = [...keys, ...tokens.map(refreshTokenView)]
        .filter((one) => client_id === undefined || one.client_id === client_id)
        .filter((one) => type === undefined || one.type === type)
        .slice(0, MAX_CREDENTIALS.listed);
      const source = mapped(
        arraySource(all, ({ id }) => id),
        (one: object) => selectFields(one, query),
      );
      return ok(await listAnswer(query, source, { key: 'device_credentials' }));
    },
  }),
  call({
    method: 'POST',
    path: '/device-credentials',
    scopes: [],
    currentUserScopes: ['create:current_user_device_credentials'],
    currentUserAct: 'device_credential',
    summary: 'Register the public key of a device of the calling user',
    body: z.strictObject({
      device_name: z.string().min(1).max(255),
      type: z.literal('public_key'),
      value: z.string().min(1).max(4096),
      device_id: z.string().min(1).max(255),
      client_id: z.string().max(255).optional(),
    }),
    handle: async ({ store }, { body, caller, admitAgain }) => {
      const { type: _, client_id = caller.clientId, ...device } = body;
      const id = idFor(caller.subject, client_id, device.device_id);
      // `accountId` makes it one of the user's artifacts, which are deleted when all access of the user ends.
      // docs/understand/decisions/management-api.md#a-users-public-keys-of-devices-are-deleted-when-all-access-is-revoked
      const payload = { ...device, accountId: caller.subject, clientId: client_id };
      await writeInTurn(store, `device keys of ${caller.subject}`, async () => {
        await admitAgain();
        if ((await publicKeysOf(store, caller.subject)).length >= MAX_CREDENTIALS.keys)
          throw apiError(403, 'You reached the limit of entities of this type for this tenant.');
        return [{ collection: 'artifacts', insert: { id: keyOf(id), model: MODEL, payload } }];
      }).catch((thrown: unknown) => {
        throw thrown instanceof UniqueKeyError ? conflict('The device credential already exists.')() : thrown;
      });
      return created({ id });
    },
  }),
  call({
    method: 'DELETE',
    path: '/device-credentials/:credential_id',
    scopes: ['delete:device_credentials'],
    currentUserScopes: ['delete:current_user_device_credentials'],
    currentUserAct: 'session',
    summary: 'Delete a device credential; a refresh token is revoked',
    handle: async ({ store, refreshTokens }, { params, caller }) => {
      const id = params.credential_id ?? '';
      const token = await refreshTokens.get(id);
      if (token !== undefined) {
        refuseOthers(caller, token.user_id);
        await refreshTokens.end(id);
        return noContent({ before: refreshTokenView(token) });
      }
      const artifacts = store.collection('artifacts');
      const found = await artifacts.get(keyOf(id));
      if (found === undefined) return noContent();
      refuseOthers(caller, found.payload.accountId);
      await artifacts.delete(found.id);
      return noContent({ before: publicKeyView(found) });
    },
  }),
];
