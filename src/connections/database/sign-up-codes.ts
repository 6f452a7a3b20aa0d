// Sign-up on the hosted page with addresses that are proved by codes. The account is created only after all of them were
// proved, so that nobody has one with somebody else's address. Until then the sign-up is stored with the request.
import type { Context } from 'koa';
import { waitsForLogin } from '../../flow/next.ts';
import {
  openRequestPage,
  type RequestPage,
  requestLanguages,
  tooManyAlert,
} from '../../flow/request-page.ts';
import { formFields } from '../../http/body-fields.ts';
import { nameBrowser } from '../../http/browser.ts';
import { AuthError } from '../../http/errors.ts';
import { PAGE, type RouteDeclarations } from '../../http/routes.ts';
import { addressKey } from '../../protection/addresses.ts';
import { tryProof } from '../../protection/attempts.ts';
import type { Connection } from '../../records/collections.ts';
import { type CodeKind, passwordUse } from '../../records/database-options.ts';
import { addressesOfNew, identityOfNew } from '../../records/new-identity.ts';
import { FIRST_VERSION } from '../../users/login.ts';
import { signUpRefusal, type TypedAddresses } from '../../users/signup.ts';
import { strategyFor, verifiedBy } from '../passwordless/session-code.ts';
import { codesOf } from '../passwordless/session-routes.ts';
import { start } from '../passwordless/start.ts';
import { byOwnPassword, resolveConnection } from '../resolve.ts';
import { loginBy } from '../strategy.ts';
import type { PasswordPagesDependencies } from './form-dependencies.ts';
import { isSignUpOpen } from './pages.ts';
import { type SignUpRequest, STEP, showCode, type WaitingSignUp } from './sign-up-code-page.ts';
import { refusedByCode, signUpAsker } from './sign-up-hooks.ts';
import { provedByCode } from './sign-up-proofs.ts';
import { askNewToVerify } from './verification-link.ts';

const PURPOSE = 'signup_code';

/** Stores a sign-up with its request and sends the first code. @throws AuthError as {@link start}. */
export async function beginSignUpCodes(
  deps: PasswordPagesDependencies,
  ctx: Context,
  page: RequestPage,
  { connection, typed, password }: { connection: Connection; typed: TypedAddresses; password?: string },
): Promise<void> {
  const waiting = {
    connection: connection.name,
    addresses: addressesOfNew(typed),
    ...(password !== undefined && { passwordHash: await deps.users.hash(password) }),
    left: provedByCode(connection, typed),
    proved: [],
  };
  await send(deps, ctx, { page, connection }, waiting);
}

export const signUpCodePages: RouteDeclarations<PasswordPagesDependencies> = {
  [`GET /u/:uid/${STEP}` as const]: opened((deps, ctx, at, waiting) => showCode(deps, ctx, at, waiting)),
  [`POST /u/:uid/${STEP}` as const]: opened(useCode),
  [`POST /u/:uid/${STEP}/again` as const]: opened(sendAgain),
};

type Handle = (
  deps: PasswordPagesDependencies,
  ctx: Context,
  at: SignUpRequest,
  waiting: WaitingSignUp,
) => Promise<void>;

/** Returns the declaration of a route at a waiting sign-up. */
function opened(handle: Handle) {
  return {
    ...PAGE,
    handle: (deps: PasswordPagesDependencies, ctx: Context) => openSignUp(deps, ctx, handle),
  };
}

/** Opens the request and its waiting sign-up. Without one, or if signing up is no longer allowed, shows the sign-up form. */
async function openSignUp(deps: PasswordPagesDependencies, ctx: Context, handle: Handle): Promise<void> {
  const page = await openRequestPage(deps, ctx);
  if (ctx.method === 'POST') deps.csrf.verify(ctx);
  const { pending } = page;
  const waiting = pending.remembered.signUp as WaitingSignUp | undefined;
  if (waiting === undefined || !waitsForLogin(pending)) return deps.showNext(ctx, page, 'signup');
  const { connection: name, organization } = pending.params;
  const asked = { clientId: pending.clientId, connection: name ?? waiting.connection, organization };
  const found = await resolveConnection(deps.config, asked, byOwnPassword);
  // The operator may have closed sign-ups since this one began.
  const isOpen =
    'strategy' in found &&
    found.connection.name === waiting.connection &&
    isSignUpOpen(page, found.connection) &&
    signUpRefusal(found.connection, waiting.addresses) === undefined;
  if (!isOpen) return deps.showNext(ctx, page, 'signup');
  await handle(deps, ctx, { page, connection: found.connection }, waiting);
}

/** Returns the address that is proved next. */
function provedNow({ left, addresses }: Pick<WaitingSignUp, 'left' | 'addresses'>) {
  const [kind = 'email'] = left;
  return { kind, address: addresses[kind] ?? '' };
}

/** Sends a code to the next address, even if it is taken: only somebody who has proved it learns that. */
async function send(
  deps: PasswordPagesDependencies,
  ctx: Context,
  { page, connection }: SignUpRequest,
  waiting: Omit<WaitingSignUp, 'session'>,
): Promise<void> {
  const { kind, address } = provedNow(waiting);
  // A sign-up can have codes sent to any address, so it takes from the limit of requests for codes.
  await deps.rateLimits.takeFrom(ctx, 'passwordlessStart');
  const session = await start(deps, ctx, {
    client: page.client,
    connection: codesOf(connection, kind, true),
    address,
    session: { purpose: PURPOSE, data: { address, uid: page.pending.uid }, isFor: () => true },
    caller: { ip: ctx.ip, ...nameBrowser(ctx, deps.random) },
    languages: requestLanguages(ctx, page),
  });
  const now = { ...waiting, session: session ?? '' };
  await deps.interactions.remember(ctx, { ...page.pending.remembered, signUp: now });
  await showCode(deps, ctx, { page, connection }, now);
}

async function sendAgain(
  deps: PasswordPagesDependencies,
  ctx: Context,
  at: SignUpRequest,
  waiting: WaitingSignUp,
): Promise<void> {
  const { address } = provedNow(waiting);
  try {
    const subject = `${PURPOSE}\n${at.connection.name}\n${address}\n${addressKey(ctx.ip)}`;
    await deps.rateLimits.take(ctx, 'passwordlessResend', subject);
    await send(deps, ctx, at, waiting);
  } catch (thrown) {
    if (!(thrown instanceof AuthError) || thrown.status !== 429) throw thrown;
    await showCode(deps, ctx, at, waiting, { alert: 'passwordless.tooSoon' }, 429);
  }
}

async function useCode(
  deps: PasswordPagesDependencies,
  ctx: Context,
  at: SignUpRequest,
  waiting: WaitingSignUp,
): Promise<void> {
  // Codes may be typed with spaces or a dash.
  const code = formFields(ctx, 'code').code.replace(/[\s-]/g, '');
  const again = (alert: string, status = 400) => showCode(deps, ctx, at, waiting, { alert }, status);
  if (code === '') return again('passwordless.missing');
  const [kind = 'email', ...left] = waiting.left;
  try {
    if (!(await isRight(deps, ctx, at, { ...waiting, code }))) return await again('passwordless.wrong');
    const now = { ...waiting, left, proved: [...waiting.proved, kind] };
    await (left.length > 0 ? send(deps, ctx, at, now) : finish(deps, ctx, at, now));
  } catch (thrown) {
    const alert = thrown instanceof AuthError ? tooManyAlert(thrown) : undefined;
    if (!(thrown instanceof AuthError) || alert === undefined) throw thrown;
    await again(alert, thrown.status);
  }
}

/** Returns whether a code is right, and uses it up. Wrong codes count against the address. */
async function isRight(
  { attempts, challenges, random }: PasswordPagesDependencies,
  ctx: Context,
  { page, connection }: SignUpRequest,
  { session, code, ...waiting }: WaitingSignUp & { code: string },
): Promise<boolean> {
  const { address } = provedNow(waiting);
  const attempt = {
    ip: ctx.ip,
    ...nameBrowser(ctx, random),
    connection: connection.name,
    identifier: address,
  };
  const right = await tryProof(attempts, { ...attempt, proof: 'code' }, async () => {
    const { address: sentTo, uid } = (await challenges.find(PURPOSE, session))?.data ?? {};
    if (sentTo !== address || uid !== page.pending.uid) return undefined;
    return (await challenges.use(PURPOSE, session, code)) === 'accepted' ? true : undefined;
  });
  return right === true;
}

/** Creates the user and logs them in. By now they have proved the addresses, so the page may say that one is taken. */
async function finish(
  deps: PasswordPagesDependencies,
  ctx: Context,
  { page, connection }: SignUpRequest,
  waiting: WaitingSignUp,
): Promise<void> {
  const { pending } = page;
  const { addresses, passwordHash, proved } = waiting;
  for (const kind of proved) await releaseUnproved(deps, connection, kind, addresses[kind]);
  const made = await deps.users
    .create({
      identity: identityOfNew(connection, addresses),
      profile: Object.fromEntries(proved.map((kind) => [verifiedBy(kind), true])),
      passwordHash,
      asker: signUpAsker(deps.config, ctx, page, addresses),
    })
    .catch(refusedByCode);
  const name = addresses.email ?? addresses.phone_number ?? addresses.username ?? '';
  const seen = { client_id: pending.clientId, connection: connection.name, user_name: name, ip: ctx.ip };
  if ('status' in made) return showCode(deps, ctx, { page, connection }, waiting, made, made.status);
  if (!('user' in made)) {
    deps.events.record({ ...seen, type: 'fs', description: 'taken' });
    return showCode(deps, ctx, { page, connection }, waiting, { alert: 'signup.refused' }, 400);
  }
  deps.events.record({ ...seen, type: 'ss', user_id: made.user.id });
  const languages = requestLanguages(ctx, page);
  await askNewToVerify(deps, { user: made.user, connection, client: page.client, languages, ip: ctx.ip });
  const by = { userId: made.user.id, connection: connection.name, ip: ctx.ip };
  const strategy = strategyFor(proved.at(-1) ?? 'email');
  await deps.finish.login(ctx, pending, loginBy(deps, strategy, { ...by, credentialVersion: FIRST_VERSION }));
}

/**
 * Removes a just proved address from an account that never proved it. An e-mail address in a connection with passwords stays:
 * its owner can take over that account by a password reset.
 */
async function releaseUnproved(
  { users }: PasswordPagesDependencies,
  connection: Connection,
  kind: CodeKind,
  address: string | undefined,
): Promise<void> {
  if (address === undefined || (kind === 'email' && passwordUse(connection).logsIn)) return;
  await users.releaseUnproved({ connection: connection.name, kind, address });
}
