// Sign-up on the hosted page with addresses that are proved by codes. The account is created only after all of them were
// proved, so that nobody has one with somebody else's address. Until then the sign-up is stored with the request.
// docs/understand/decisions/users-linking.md#a-sign-up-that-a-code-has-to-verify-creates-no-account-until-the-code-is-right
import type { Context } from 'koa';
import { tryProof } from '../../../../capabilities/protection/attempts.ts';
import { addressKey } from '../../../../http/addresses.ts';
import { AuthError } from '../../../../http/errors.ts';
import { formFields } from '../../../../http/server/body.ts';
import { nameBrowser } from '../../../../http/server/browser-cookie.ts';
import { PAGE, type RouteDeclarations } from '../../../../http/server/router.ts';
import type { Connection } from '../../../../records/collections.ts';
import { type CodeKind, passwordUse } from '../../../../records/database-options.ts';
import { addressesOfNew, identityOfNew } from '../../../../records/new-identity.ts';
import type { ConnectionAddress } from '../../../../users/changes.ts';
import { FIRST_VERSION } from '../../../../users/login.ts';
import { signUpRefusal, type TypedAddresses } from '../../../../users/signup.ts';
import { userEvents } from '../../../../users/users-declaration.ts';
import { waitsForLogin } from '../../../flow/finish.ts';
import { flowLimits } from '../../../flow/flow-declaration.ts';
import {
  openRequestPage,
  pageModel,
  type RequestPage,
  renderPage,
  requestLanguages,
  stepPath,
  tooManyAlert,
} from '../../../flow/request-page.ts';
import { passwordlessLimits } from '../../passwordless/passwordless-declaration.ts';
import { PASSWORDLESS_CODE_PAGE } from '../../passwordless/passwordless-hosted.ts';
import { start } from '../../passwordless/passwordless-start.ts';
import { strategyFor, verifiedMemberOf } from '../../passwordless/session-code.ts';
import { asPasswordless, RESEND_SECONDS } from '../../passwordless/session-routes.ts';
import { byOwnPassword, resolveConnection } from '../../resolve.ts';
import { loginBy } from '../../strategy.ts';
import { isSignUpOpen } from '../base/database-pages.ts';
import type { PasswordPagesDependencies } from '../base/form-dependencies.ts';
import { askNewUserToVerify } from '../base/verification-link.ts';
import { serverLoginCodeRefusal, signUpAsker } from './sign-up-hooks.ts';
import { kindsToProve } from './sign-up-proofs.ts';

// The page at which the user types the codes of a sign-up.

const SIGN_UP_CODE_STEP = 'signup/code';

interface WaitingSignUp {
  /** The connection's name. */
  connection: string;
  /** In the form in which they are stored. */
  addresses: TypedAddresses;
  /** Undefined for a sign-up without a password. */
  passwordHash?: string | undefined;
  /** The kinds of address still to be proved; a code was sent to the first. */
  left: CodeKind[];
  proved: CodeKind[];
  /** The ticket that the code is valid with. */
  session: string;
}

interface SignUpRequest {
  page: RequestPage;
  connection: Connection;
}

/**
 * Answers with the page at which the next code of a sign-up is typed.
 * @param notice what the page says beside its form: an error (`alert`) or a notice (`said`), as keys of its texts.
 * @param status of the response.
 */
async function showCode(
  deps: PasswordPagesDependencies,
  ctx: Context,
  { page, connection }: SignUpRequest,
  { left, proved, addresses }: Pick<WaitingSignUp, 'left' | 'proved' | 'addresses'>,
  notice: { alert?: string; said?: string | undefined } = {},
  status = 200,
): Promise<void> {
  const kind = left[0] ?? proved.at(-1) ?? 'email';
  const { strategy, digits, ttlSeconds } = asPasswordless(connection, kind, true);
  await renderPage(
    deps,
    ctx,
    page,
    PASSWORDLESS_CODE_PAGE,
    {
      ...pageModel(page, SIGN_UP_CODE_STEP),
      ...notice,
      address: addresses[kind] ?? '',
      channel: strategy.name,
      digits,
      minutes: Math.ceil(ttlSeconds / 60),
      resendUrl: stepPath(page.waiting, `${SIGN_UP_CODE_STEP}/again`),
      resendSeconds: RESEND_SECONDS,
      backUrl: stepPath(page.waiting, 'signup'),
    },
    status,
  );
}

const PURPOSE = 'signup_code';

/** Stores a sign-up with its request and sends the first code. @throws AuthError as {@link start}. */
export async function beginSignUpCodes(
  deps: PasswordPagesDependencies,
  ctx: Context,
  page: RequestPage,
  { connection, typed, password }: { connection: Connection; typed: TypedAddresses; password?: string },
): Promise<void> {
  const signUp = {
    connection: connection.name,
    addresses: addressesOfNew(typed),
    ...(password !== undefined && { passwordHash: await deps.users.hash(password) }),
    left: kindsToProve(connection, typed),
    proved: [],
  };
  await sendCode(deps, ctx, { page, connection }, signUp);
}

export const signUpCodePages: RouteDeclarations<PasswordPagesDependencies> = {
  [`GET /u/:uid/${SIGN_UP_CODE_STEP}` as const]: codeRoute((deps, ctx, request, signUp) =>
    showCode(deps, ctx, request, signUp),
  ),
  [`POST /u/:uid/${SIGN_UP_CODE_STEP}` as const]: codeRoute(handleCode),
  [`POST /u/:uid/${SIGN_UP_CODE_STEP}/again` as const]: codeRoute(sendAgain),
};

type CodeHandler = (
  deps: PasswordPagesDependencies,
  ctx: Context,
  request: SignUpRequest,
  signUp: WaitingSignUp,
) => Promise<void>;

function codeRoute(handle: CodeHandler) {
  return {
    ...PAGE,
    handle: (deps: PasswordPagesDependencies, ctx: Context) => openSignUp(deps, ctx, handle),
  };
}

/** Opens the request and its waiting sign-up. Without one, or if signing up is no longer allowed, shows the sign-up form. */
async function openSignUp(deps: PasswordPagesDependencies, ctx: Context, handle: CodeHandler): Promise<void> {
  const page = await openRequestPage(deps, ctx);
  if (ctx.method === 'POST') deps.csrf.verify(ctx);
  const { waiting } = page;
  const signUp = waiting.remembered.signUp as WaitingSignUp | undefined;
  if (signUp === undefined || !waitsForLogin(waiting)) return deps.showNext(ctx, page, 'signup');
  const { connection: name, organization } = waiting.params;
  const query = { clientId: waiting.clientId, connection: name ?? signUp.connection, organization };
  const found = await resolveConnection(deps.config, query, byOwnPassword);
  // The operator may have closed sign-ups since this one began.
  const isOpen =
    'strategy' in found &&
    found.connection.name === signUp.connection &&
    isSignUpOpen(page, found.connection) &&
    signUpRefusal(found.connection, signUp.addresses) === undefined;
  if (!isOpen) return deps.showNext(ctx, page, 'signup');
  await handle(deps, ctx, { page, connection: found.connection }, signUp);
}

function nextAddress({ left, addresses }: Pick<WaitingSignUp, 'left' | 'addresses'>) {
  const [kind = 'email'] = left;
  return { kind, address: addresses[kind] ?? '' };
}

/** Sends a code to the next address, even if it is taken: only somebody who has proved it learns that. */
async function sendCode(
  deps: PasswordPagesDependencies,
  ctx: Context,
  { page, connection }: SignUpRequest,
  signUp: Omit<WaitingSignUp, 'session'>,
): Promise<void> {
  const { kind, address } = nextAddress(signUp);
  // A sign-up can have codes sent to any address, so it takes from the limit of requests for codes.
  await deps.rateLimits.takeFrom(ctx, passwordlessLimits.passwordlessStart);
  const session = await start(deps, ctx, {
    client: page.client,
    connection: asPasswordless(connection, kind, true),
    address,
    session: { purpose: PURPOSE, data: { address, uid: page.waiting.uid }, mayReceive: () => true },
    caller: { ip: ctx.ip, ...nameBrowser(ctx, deps.random) },
    languages: requestLanguages(ctx, page),
  });
  const updated = { ...signUp, session: session ?? '' };
  await deps.waitingRequests.remember(ctx, { ...page.waiting.remembered, signUp: updated });
  await showCode(deps, ctx, { page, connection }, updated);
}

async function sendAgain(
  deps: PasswordPagesDependencies,
  ctx: Context,
  request: SignUpRequest,
  signUp: WaitingSignUp,
): Promise<void> {
  const { address } = nextAddress(signUp);
  try {
    const subject = `${PURPOSE}\n${request.connection.name}\n${address}\n${addressKey(ctx.ip)}`;
    await deps.rateLimits.take(ctx, flowLimits.passwordlessResend, subject);
    await sendCode(deps, ctx, request, signUp);
  } catch (thrown) {
    if (!(thrown instanceof AuthError) || thrown.status !== 429) throw thrown;
    await showCode(deps, ctx, request, signUp, { alert: 'passwordless.tooSoon' }, 429);
  }
}

async function handleCode(
  deps: PasswordPagesDependencies,
  ctx: Context,
  request: SignUpRequest,
  signUp: WaitingSignUp,
): Promise<void> {
  // Codes may be typed with spaces or a dash.
  const code = formFields(ctx, 'code').code.replace(/[\s-]/g, '');
  const showError = (alert: string, status = 400) => showCode(deps, ctx, request, signUp, { alert }, status);
  if (code === '') return showError('passwordless.missing');
  const [kind = 'email', ...left] = signUp.left;
  try {
    if (!(await verifyCode(deps, ctx, request, { ...signUp, code })))
      return await showError('passwordless.wrong');
    const updated = { ...signUp, left, proved: [...signUp.proved, kind] };
    await (left.length > 0
      ? sendCode(deps, ctx, request, updated)
      : completeSignUp(deps, ctx, request, updated));
  } catch (thrown) {
    const alert = thrown instanceof AuthError ? tooManyAlert(thrown) : undefined;
    if (!(thrown instanceof AuthError) || alert === undefined) throw thrown;
    await showError(alert, thrown.status);
  }
}

/** Returns whether a code is right, and uses it up. Wrong codes count against the address. */
async function verifyCode(
  { attempts, challenges, random }: PasswordPagesDependencies,
  ctx: Context,
  { page, connection }: SignUpRequest,
  { session, code, ...signUp }: WaitingSignUp & { code: string },
): Promise<boolean> {
  const { address } = nextAddress(signUp);
  const attempt = {
    ip: ctx.ip,
    ...nameBrowser(ctx, random),
    connection: connection.name,
    identifier: address,
  };
  const result = await tryProof(attempts, { ...attempt, proof: 'code' }, async () => {
    const { address: sentTo, uid } = (await challenges.find(PURPOSE, session))?.data ?? {};
    if (sentTo !== address || uid !== page.waiting.uid) return undefined;
    return (await challenges.use(PURPOSE, session, code)) === 'accepted' ? true : undefined;
  });
  return result === true;
}

/** Creates the user and logs them in. By now they have proved the addresses, so the page may say that one is taken. */
async function completeSignUp(
  deps: PasswordPagesDependencies,
  ctx: Context,
  { page, connection }: SignUpRequest,
  signUp: WaitingSignUp,
): Promise<void> {
  const { waiting } = page;
  const { addresses, passwordHash, proved } = signUp;
  const result = await deps.users
    .create({
      identity: identityOfNew(connection, addresses),
      profile: Object.fromEntries(proved.map((kind) => [verifiedMemberOf(kind), true])),
      passwordHash,
      releases: releasesOf(connection, proved, addresses),
      asker: signUpAsker(deps.config, ctx, page, addresses),
    })
    .catch(serverLoginCodeRefusal);
  const name = addresses.email ?? addresses.phone_number ?? addresses.username ?? '';
  const details = { client_id: waiting.clientId, connection: connection.name, user_name: name, ip: ctx.ip };
  if ('status' in result) return showCode(deps, ctx, { page, connection }, signUp, result, result.status);
  if (!('user' in result)) {
    deps.events.record({ ...details, type: userEvents.fs, description: 'taken' });
    return showCode(deps, ctx, { page, connection }, signUp, { alert: 'signup.refused' }, 400);
  }
  deps.events.record({ ...details, type: userEvents.ss, user_id: result.user.id });
  const languages = requestLanguages(ctx, page);
  await askNewUserToVerify(deps, {
    user: result.user,
    connection,
    client: page.client,
    languages,
    ip: ctx.ip,
  });
  const proof = { userId: result.user.id, connection: connection.name, ip: ctx.ip };
  const strategy = strategyFor(proved.at(-1) ?? 'email');
  await deps.finish.login(
    ctx,
    waiting,
    loginBy(deps, strategy, { ...proof, credentialVersion: FIRST_VERSION }),
  );
}

/**
 * Returns the just proved addresses, which accounts that never proved them lose. An e-mail address in a connection with
 * passwords stays: its owner can take over that account by a password reset.
 */
function releasesOf(
  connection: Connection,
  proved: readonly CodeKind[],
  addresses: WaitingSignUp['addresses'],
): ConnectionAddress[] {
  return proved.flatMap((kind) => {
    const address = addresses[kind];
    if (address === undefined || (kind === 'email' && passwordUse(connection).logsIn)) return [];
    return [{ connection: connection.name, kind, address }];
  });
}
