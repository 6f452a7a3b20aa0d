// Keeps a form that was sent when the login was too old for it, or after the session's eight hours. After the next
// login the form is shown to the same administrator, who sends or discards it. It is not carried out by the login
// alone, because someone who found an open browser could have filled it in. It is stored encrypted for 15 minutes,
// one per administrator. Only the session of the new login refers to it: no URL and no page contains anything by
// which it could be fetched.
// docs/understand/decisions/console-account.md#a-form-that-is-sent-with-too-old-a-login-waits-for-a-new-one-and-is-then-shown
import type { Context } from 'koa';
import type { VerifiedChallenge } from '../../capabilities/protection/challenges.ts';
import { AuthError } from '../../http/errors.ts';
import { bodyObject } from '../../http/server/body.ts';
import { CONSOLE_FORM } from '../../records/collections.ts';
import { isSealed, openValue, SealFault, sealValue } from '../../store/sealing/records.ts';
import { sharedKey } from '../../store/shared-secret.ts';
import { CONSOLE } from './console-callbacks.ts';
import type { ConsoleSession, ConsoleSessionDependencies } from './console-session.ts';

/** Path of the page that shows the form again after the login. */
export const AGAIN = `${CONSOLE}/again`;
/** Name of the field by which that page asks to send the kept form in place of its own fields. */
export const AGAIN_FIELD = '_again';

export interface KeptForm {
  /** The address that it was sent to: path and query. */
  path: string;
  /** Path of the console page that the form was sent from. */
  from: string;
  section: string;
  /** All fields except the session's token. */
  body: Readonly<Record<string, unknown>>;
}

type Deps = Pick<ConsoleSessionDependencies, 'challenges' | 'store' | 'random'>;

const KEPT_SECONDS = 900;
/** The maximum size, characters of JSON; the largest form of the console is a file of 500 kB. */
const MAX_LENGTH = 640 * 1024;

/**
 * Keeps the form of a request, replacing the one that the administrator sent before.
 * @returns the secret by which it is read again; undefined when it is too large.
 */
export async function keepForm(
  deps: Deps,
  ctx: Context,
  { administrator: { userId } }: ConsoleSession,
  { from, section }: Pick<KeptForm, 'from' | 'section'>,
): Promise<string | undefined> {
  const { _csrf, [AGAIN_FIELD]: _again, ...body } = bodyObject(ctx);
  const form: KeptForm = { path: ctx.url, from, section, body };
  if (JSON.stringify(form).length > MAX_LENGTH) return undefined;
  const { secret } = await deps.challenges.issueTicket({
    purpose: CONSOLE_FORM,
    subject: userId,
    userId,
    ttlSeconds: KEPT_SECONDS,
    data: { form: sealValue(await keyOf(deps), placeOf(userId), form) },
  });
  return secret;
}

/** Returns the form that is kept for this session, and leaves it there. */
export async function readKeptForm(deps: Deps, session: ConsoleSession): Promise<KeptForm | undefined> {
  if (session.form === undefined) return undefined;
  return decryptForm(deps, session, await deps.challenges.peekTicket(CONSOLE_FORM, session.form));
}

/**
 * Takes the form that is kept for this session, and makes it the request's body. Of concurrent requests only one gets
 * it.
 * @throws AuthError 400 when no form is kept, or it was sent to another address.
 */
export async function restoreForm(deps: Deps, ctx: Context, session: ConsoleSession): Promise<void> {
  const expired = new AuthError(400, 'invalid_request', 'What you had filled in is not kept any more.');
  if (session.form === undefined) throw expired;
  const form = await decryptForm(
    deps,
    session,
    await deps.challenges.spendTicket(CONSOLE_FORM, session.form),
  );
  if (form?.path !== ctx.url) throw expired;
  Object.assign(ctx.request, { body: form.body });
}

async function decryptForm(
  deps: Deps,
  { administrator: { userId } }: ConsoleSession,
  verifiedChallenge: VerifiedChallenge | undefined,
): Promise<KeptForm | undefined> {
  if (verifiedChallenge?.userId !== userId || !isSealed(verifiedChallenge.data.form)) return undefined;
  try {
    return openValue(await keyOf(deps), placeOf(userId), verifiedChallenge.data.form) as KeptForm;
  } catch (thrown) {
    // The key was lost and has been replaced.
    if (thrown instanceof SealFault) return undefined;
    throw thrown;
  }
}

const keyOf = (deps: Deps) => sharedKey(deps, 'console-forms');
const placeOf = (id: string) => ({ collection: 'challenges', id, member: ['form'] });
