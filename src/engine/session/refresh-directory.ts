// Refresh tokens as the Management API shows them: one for each family. The id is the hash under which it is
// stored, which cannot be used as a token.
// docs/understand/decisions/sessions-logout.md#a-session-is-identified-by-its-sid-a-refresh-token-by-the-hash-that-it-is-stored-under

import type { Challenges } from '../../capabilities/protection/challenges.ts';
import type { Frozen } from '../../records/base/record.ts';
import type { ArtifactRecord } from '../../records/state/engine.ts';
import type { Store } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import { boundsOf } from '../admission/lifetimes.ts';
import { endBackchannelRequests } from '../base/backchannel-requests.ts';
import { endTokensOf } from '../base/granted.ts';
import type { Device } from '../base/request-extensions.ts';
import { isOidcScope, toAudience } from '../base/request-extensions.ts';
import { revokeGrant } from './refresh-families.ts';

export interface RefreshTokenView {
  id: string;
  user_id: string;
  client_id: string;
  /** The session of the login; null for a login without a browser. */
  session_id: string | null;
  rotating: boolean;
  resource_servers: { audience: string; scopes: string[] }[];
  created_at: string | null;
  last_exchanged_at: string | null;
  idle_expires_at: string | null;
  expires_at: string | null;
  device?: Device;
  refresh_token_metadata?: Readonly<Record<string, unknown>>;
}

export interface RefreshTokenDirectory {
  of(userId: string): Promise<RefreshTokenView[]>;
  /** Returns some refresh tokens, of any users. @param most how many at most. */
  list(most: number): Promise<RefreshTokenView[]>;
  get(id: string): Promise<RefreshTokenView | undefined>;
  /** Revokes a refresh token with its family, and all other tokens of the same grant. */
  end(id: string): Promise<void>;
  /**
   * Revokes everything that a user has granted an application: tokens, codes that are not redeemed yet, and CIBA
   * requests.
   */
  endAllOf(userId: string, clientId: string): Promise<void>;
  /**
   * Revokes the codes and CIBA requests of a user that an application has not redeemed yet.
   * @param audience restricts it to this API.
   */
  endUnredeemedOf(userId: string, clientId: string, audience: string | undefined): Promise<void>;
  /**
   * Replaces the metadata of a refresh token; undefined removes it.
   * @returns undefined when there is no such token.
   */
  setMetadata(
    id: string,
    metadata: Readonly<Record<string, unknown>> | undefined,
  ): Promise<RefreshTokenView | undefined>;
}

type Artifact = Frozen<ArtifactRecord>;

const PREFIX = 'rt_';

/** The key prefix of the records of families. */
const KEY_PREFIX = 'RefreshTokenFamily.sha256:';

/** Returns the ISO date of epoch seconds; null for anything else. */
export function isoDate(seconds: unknown): string | null {
  return typeof seconds === 'number' && Number.isFinite(seconds)
    ? new Date(seconds * 1000).toISOString()
    : null;
}

export function refreshTokenDirectory(deps: {
  store: Store;
  config: Config;
  challenges: Challenges;
}): RefreshTokenDirectory {
  const { store, config } = deps;
  const artifacts = store.collection('artifacts');
  const isRefreshToken = ({ model }: Artifact) => model === 'RefreshToken';
  const view = async (token: Artifact) => describeRefreshToken(config, token);
  const find = async (id: string): Promise<Artifact | undefined> => {
    if (!id.startsWith(PREFIX)) return undefined;
    return artifacts.get(KEY_PREFIX + id.slice(PREFIX.length));
  };
  return {
    of: async (userId) =>
      Promise.all((await artifacts.findBy('account', userId)).filter(isRefreshToken).map(view)),
    list: async (most) => {
      const where = { field: 'id', prefix: KEY_PREFIX };
      const { records } = await artifacts.list({ where, limit: most });
      return Promise.all(records.map(view));
    },
    get: async (id) => {
      const found = await find(id);
      return found && view(found);
    },
    end: async (id) => {
      const found = await find(id);
      if (found === undefined) return;
      await artifacts.delete(found.id);
      if (typeof found.payload.grantId === 'string') await revokeGrant(artifacts, found.payload.grantId);
    },
    endAllOf: async (userId, clientId) => {
      await endTokensOf(store, userId, clientId);
      await endBackchannelRequests(deps, userId, { clientId });
    },
    endUnredeemedOf: async (userId, clientId, audience) => {
      const codes = (await artifacts.findBy('account', userId)).filter(
        ({ model, payload }) =>
          model === 'AuthorizationCode' &&
          payload.clientId === clientId &&
          (audience === undefined || apisOf(payload).some((one) => one.audience === audience)),
      );
      await Promise.all(codes.map(({ id }) => artifacts.delete(id)));
      await endBackchannelRequests(deps, userId, { clientId, ...(audience !== undefined && { audience }) });
    },
    setMetadata: async (id, metadata) => {
      const found = await find(id);
      if (found === undefined) return undefined;
      const updated = await artifacts.update(
        found.id,
        ({ payload: { metadata: _, ...payload }, ...current }) => ({
          ...current,
          payload: { ...payload, ...(metadata === undefined ? {} : { metadata }) },
        }),
      );
      return updated && view(updated);
    },
  };
}

/** Describes a refresh token as the Management API shows it. */
export async function describeRefreshToken(
  config: Pick<Config, 'client'>,
  { id, payload }: Artifact,
): Promise<RefreshTokenView> {
  const { accountId, clientId, sessionUid, iiat, lastUsed, device, metadata } = payload;
  const rules = (await config.client(String(clientId)))?.refresh_token;
  const expires = rules?.expiration_type === 'expiring';
  const isIdle = expires && rules.infinite_idle_token_lifetime !== true;
  const isBounded = expires && rules.infinite_token_lifetime !== true;
  const { expiresAt, idleExpiresAt } = boundsOf(payload);
  const end = isBounded && typeof iiat === 'number' ? iiat + rules.token_lifetime : undefined;
  return {
    id: PREFIX + id.slice(id.indexOf(':') + 1),
    user_id: String(accountId),
    client_id: String(clientId),
    session_id: typeof sessionUid === 'string' ? sessionUid : null,
    rotating: rules?.rotation_type === 'rotating',
    resource_servers: apisOf(payload),
    created_at: isoDate(iiat),
    last_exchanged_at: isoDate(lastUsed),
    idle_expires_at: isIdle || idleExpiresAt !== undefined ? isoDate(latestExpiry(payload)) : null,
    expires_at: isoDate(earliest(end, expiresAt)),
    ...(device === undefined ? {} : { device: device as Device }),
    ...(metadata === undefined
      ? {}
      : { refresh_token_metadata: metadata as Readonly<Record<string, unknown>> }),
  };
}

type Payload = Artifact['payload'];

const earliest = (...times: (number | undefined)[]) => {
  const known = times.filter((one) => one !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
};

function latestExpiry({ tokens }: Payload): number {
  return Math.max(...(tokens as readonly { exp: number }[]).map(({ exp }) => exp));
}

function apisOf({ resource, scope }: Payload): { audience: string; scopes: string[] }[] {
  const resources = (Array.isArray(resource) ? resource : [resource]).filter(
    (one) => typeof one === 'string',
  );
  const scopes = String(scope ?? '')
    .split(' ')
    .filter((one) => one !== '' && !isOidcScope(one));
  return resources.map((one) => ({ audience: toAudience(one as string), scopes }));
}
