// Applies what actions ask for the session and the refresh token of a login.
import { errors, type KoaContextWithOIDC, type RefreshToken, type Session } from 'oidc-provider';
import type { ActionLogFields, Actions } from '../../capabilities/actions/actions.ts';
import type { AssertionChanges } from '../../capabilities/actions/assertion-methods.ts';
import type { ActionOutcome } from '../../capabilities/actions/commands.ts';
import { withMembers } from '../../capabilities/actions/current-event.ts';
import { metadataAfter, type SessionChanges } from '../../capabilities/actions/session-methods.ts';
import type { Trigger } from '../../records/tenant/actions.ts';
import { type ClaimTarget, claimFault } from '../../records/users/custom-claims.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Store } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import { MAX_METADATA_LENGTH, MetadataTooLarge } from '../../users/changes.ts';
import { withinLimit } from '../../users/profile.ts';
import type { Users } from '../../users/users.ts';
import { boundsOf, updatedBounds } from '../admission/lifetimes.ts';
import { familyKey, revokeGrant } from '../session/refresh-families.ts';
import { sessionMetadata, setSessionMetadata } from '../session/session-metadata.ts';
import { recordedMethods } from './login-event.ts';

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
  if (!isBounded && changesNothing(changes)) return;
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
      await artifacts.delete(familyKey(token.jti));
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

// Filters the claims that actions set: claims that they may not set are left out and logged.

/** What actions add to the tokens of a login. */
export interface ActionClaims {
  idToken: Record<string, unknown>;
  accessToken: Record<string, unknown>;
  /** Changes of the access token's scope: true for a scope that is added, false for one that is removed. */
  scopes?: Record<string, boolean>;
  /** The scopes that the access token is to have, where actions have set them (`transaction.setTargetScopes`). */
  targetScopes?: readonly string[];
  assertion?: AssertionChanges;
}

/**
 * Returns the claims without those that belong to the protocol (or, in ID tokens, to the profile) and those that
 * exceed the size limit. Each that is left out is logged.
 */
export function allowedClaims(
  actions: Pick<Actions, 'recordRefusal'>,
  { trigger, to, about }: { trigger: Trigger; to: ClaimTarget; about: ActionLogFields },
  claims: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const refuse = (reason: string) => actions.recordRefusal(trigger, `a claim: ${reason}`, about);
  const allowed = Object.entries(claims).filter(([claim]) => {
    const fault = claimFault(claim, [to]);
    if (fault !== undefined) refuse(fault);
    return fault === undefined;
  });
  return Object.fromEntries(withinLimit(allowed, (claim) => claim, refuse));
}

// Stores the user metadata and app metadata that actions set.

interface MetadataDependencies {
  users: Pick<Users, 'update'>;
  actions: Pick<Actions, 'recordRefusal'>;
}

// docs/understand/decisions/actions-scripts.md#metadata-that-actions-set-is-limited
/**
 * Stores the metadata that actions set, all or nothing: when it would exceed the limit nothing is stored, and the
 * log says so.
 */
export async function storeMetadata(
  { users, actions }: MetadataDependencies,
  { trigger, userId, about }: { trigger: Trigger; userId: string; about: ActionLogFields },
  { userMetadata, appMetadata }: Pick<ActionOutcome, 'userMetadata' | 'appMetadata'>,
): Promise<void> {
  if (Object.keys(userMetadata).length + Object.keys(appMetadata).length === 0) return;
  try {
    await users.update(userId, {}, ({ user_metadata, app_metadata }) => ({
      user_metadata: withMembers(user_metadata, userMetadata),
      app_metadata: withMembers(app_metadata, appMetadata),
    }));
  } catch (thrown) {
    if (!(thrown instanceof MetadataTooLarge)) throw thrown;
    const { member } = thrown;
    actions.recordRefusal(trigger, `${member} of more than ${MAX_METADATA_LENGTH[member]} characters`, about);
  }
}
