// Applies what actions ask for the session and the refresh token of a login.
import { errors, type KoaContextWithOIDC, type RefreshToken, type Session } from 'oidc-provider';
import type { ActionLogFields, Actions } from '../../capabilities/actions/actions.ts';
import type { ActionOutcome } from '../../capabilities/actions/commands.ts';
import { metadataAfter, type SessionChanges } from '../../capabilities/actions/session-methods.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Store } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import { boundsOf, updatedBounds } from '../admission/bounds.ts';
import { familyKey, revokeGrant } from '../session/refresh-families.ts';
import { sessionMetadata, setSessionMetadata } from '../session/session-metadata.ts';
import { recordedMethods } from './action-logins.ts';

export interface EffectDependencies {
  store: Store;
  config: Pick<Config, 'settings'>;
  actions: Pick<Actions, 'recordRefusal'>;
  /** The clock by which records of the store expire. */
  clock: Clock;
  wallClock: Clock;
  /** Ends a session and tells its applications. */
  endSession(sid: string): Promise<unknown>;
}

/** The most custom authentication methods that a session keeps. */
const MAX_METHODS = 20;

const changesNothing = ({ metadata, evicts }: SessionChanges) =>
  !evicts && Object.keys(metadata).length === 0;

/**
 * Applies bounds, cookie mode, methods and metadata to the session of an authorization request that is about to be
 * answered.
 */
export async function applyToSession(
  deps: EffectDependencies,
  session: Session,
  { login: { methods, session: changes } }: ActionOutcome,
): Promise<void> {
  const bounds = updatedBounds(boundsOf(session), changes);
  if (
    bounds.expiresAt !== undefined ||
    bounds.idleExpiresAt !== undefined ||
    boundsOf(session).idleExpiresAt !== undefined
  )
    Object.assign(session, { bounds });
  if (changes.cookieMode !== undefined)
    Object.assign(session, { transient: changes.cookieMode === 'non-persistent' });
  if (methods.length > 0) {
    const timestamp = new Date(deps.wallClock()).toISOString();
    const before = recordedMethods(session).filter(({ name }) => !methods.includes(name));
    const all = [...before, ...methods.map((name) => ({ name, timestamp }))];
    Object.assign(session, { methods: all.slice(-MAX_METHODS) });
  }
  if (changesNothing(changes)) return;
  await setSessionMetadata(
    deps,
    session.uid,
    metadataAfter(await sessionMetadata(deps, session.uid), changes),
  );
}

/**
 * Applies bounds and metadata to a refresh token that is about to be used.
 * @throws errors.InvalidGrant when it has been revoked meanwhile.
 */
export async function applyToRefreshToken(
  { store }: EffectDependencies,
  token: RefreshToken,
  { login: { refreshToken: changes } }: ActionOutcome,
): Promise<void> {
  const key = familyKey(token.jti);
  const bounds = updatedBounds(boundsOf(token), changes);
  const isBounded = Object.keys({ ...bounds, ...boundsOf(token) }).length > 0;
  if (key === undefined || (!isBounded && changesNothing(changes))) return;
  Object.assign(token, { bounds });
  const updated = await store.collection('artifacts').update(key, ({ payload, ...family }) => {
    const { metadata: before, ...others } = payload;
    const metadata = metadataAfter(before as Record<string, unknown> | undefined, changes);
    return { ...family, payload: { ...others, bounds, ...(metadata && { metadata }) } };
  });
  if (updated === undefined) throw new errors.InvalidGrant('refresh token not found');
}

/**
 * Revokes the session and the refresh tokens that actions of a denied login have revoked.
 * @param about the login, for the log.
 */
export async function applyRevocations(
  { store, actions, endSession }: EffectDependencies,
  { oidc }: KoaContextWithOIDC,
  { login: { session, refreshToken } }: ActionOutcome,
  about: ActionLogFields,
): Promise<void> {
  const artifacts = store.collection('artifacts');
  const token = oidc.entities.RefreshToken;
  if (refreshToken.revoked !== undefined) {
    if (token === undefined) actions.recordRefusal('post-login', 'refreshToken.revoke: there is none', about);
    else {
      const key = familyKey(token.jti);
      if (key !== undefined) await artifacts.delete(key);
      if (token.grantId !== undefined) await revokeGrant(artifacts, token.grantId);
    }
  }
  const sid = oidc.session?.accountId === undefined ? token?.sessionUid : oidc.session.uid;
  if (session.revoked === undefined || sid === undefined) return;
  const sessionArtifacts = await artifacts.findBy('session', sid);
  await endSession(sid);
  if (session.revoked.keepsTokens) return;
  for (const { model, id, payload } of sessionArtifacts) {
    if (model !== 'RefreshToken') continue;
    await artifacts.delete(id);
    if (typeof payload.grantId === 'string') await revokeGrant(artifacts, payload.grantId);
  }
}
