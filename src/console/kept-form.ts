// A form that was sent with a login of too long ago, or after the session's eight hours. What was typed waits for the new login,
// and is shown to the same administrator then, who sends it or leaves it: nothing is carried out by the login alone, because
// whoever found an open browser could have filled the form in. It is kept sealed, for a quarter of an hour, one for each
// administrator; the session of the new login alone names it, so that no address and no page has anything by which it could be
// asked for.
import type { Context } from 'koa';
import { bodyObject } from '../http/body-fields.ts';
import { AuthError } from '../http/errors.ts';
import type { Met } from '../protection/challenges.ts';
import { isSealed, openValue, SealFault, sealValue } from '../store/sealing/members.ts';
import { sharedKey } from '../store/shared-secret.ts';
import { CONSOLE } from './callbacks.ts';
import type { AtConsole, ConsoleSessionDependencies } from './session.ts';

/** The page that shows a form again after a new login. */
export const AGAIN = `${CONSOLE}/again`;
/** The field by which that page's form asks for what was kept in place of its own fields. */
export const AGAIN_FIELD = '_again';

/** What was sent. */
export interface KeptForm {
  /** Where to, with its query. */
  path: string;
  /** The page that it was on. */
  from: string;
  /** Of the navigation, as the form's route names it. */
  section: string;
  /** All fields but the session's token. */
  body: Readonly<Record<string, unknown>>;
}

type Deps = Pick<ConsoleSessionDependencies, 'challenges' | 'store' | 'random'>;

const PURPOSE = 'console_form';
const KEPT_SECONDS = 900;
/** Characters; the largest form of the console is a file of 500 kB. */
const LARGEST = 640 * 1024;

/**
 * Keeps what a request has sent, in place of what the administrator sent before.
 * @returns by what it is taken again; undefined where it is too long.
 */
export async function keepForm(
  deps: Deps,
  ctx: Context,
  { administrator: { userId } }: AtConsole,
  { from, section }: Pick<KeptForm, 'from' | 'section'>,
): Promise<string | undefined> {
  const { _csrf, [AGAIN_FIELD]: _again, ...body } = bodyObject(ctx);
  const form: KeptForm = { path: ctx.url, from, section, body };
  if (JSON.stringify(form).length > LARGEST) return undefined;
  const { secret } = await deps.challenges.issueTicket({
    purpose: PURPOSE,
    subject: userId,
    userId,
    ttlSeconds: KEPT_SECONDS,
    data: { form: sealValue(await keyOf(deps), placeOf(userId), form) },
  });
  return secret;
}

/** What waits for who is here, without taking it. */
export async function waitingForm(deps: Deps, here: AtConsole): Promise<KeptForm | undefined> {
  if (here.form === undefined) return undefined;
  return opened(deps, here, await deps.challenges.peekTicket(PURPOSE, here.form));
}

/**
 * Takes what waits for who is here, and leaves it as the request's body: of any number of racers one gets it.
 * @throws AuthError 400 where nothing waits, or what waits was sent elsewhere.
 */
export async function takeForm(deps: Deps, ctx: Context, here: AtConsole): Promise<void> {
  const gone = new AuthError(400, 'invalid_request', 'What you had filled in is not kept any more.');
  if (here.form === undefined) throw gone;
  const form = await opened(deps, here, await deps.challenges.spendTicket(PURPOSE, here.form));
  if (form?.path !== ctx.url) throw gone;
  Object.assign(ctx.request, { body: form.body });
}

async function opened(
  deps: Deps,
  { administrator: { userId } }: AtConsole,
  met: Met | undefined,
): Promise<KeptForm | undefined> {
  if (met?.userId !== userId || !isSealed(met.data.form)) return undefined;
  try {
    return openValue(await keyOf(deps), placeOf(userId), met.data.form) as KeptForm;
  } catch (thrown) {
    // The key was lost with others and is a new one.
    if (thrown instanceof SealFault) return undefined;
    throw thrown;
  }
}

const keyOf = (deps: Deps) => sharedKey(deps, 'console-forms');
const placeOf = (id: string) => ({ collection: 'challenges', id, member: ['form'] });
