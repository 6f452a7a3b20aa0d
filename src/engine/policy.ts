// When the browser's user is asked for something: log in, choose an account, consent. The checks look at what is
// known of a request and change nothing; what they need was worked out before (browser-login.ts).
import { interactionPolicy, type KoaContextWithOIDC } from 'oidc-provider';
import { isByConnection } from './admission.ts';
import { type BrowserLogins, connectionOf } from './browser-login.ts';
import { readExtensions } from './request-extensions.ts';

const { Check, Prompt, base } = interactionPolicy;

/** The descriptions of login_required and consent_required that SDKs know. */
const LOGIN_REQUIRED = 'Login required';
const CONSENT_REQUIRED = 'Consent required';

/** Why a session is not enough: it lacks a second factor. */
export const LACKS_SECOND_FACTOR = 'second_factor';

interface PolicyDependencies extends Pick<BrowserLogins, 'lacksSecondFactor'> {
  /** @see SecondFactor.description */
  lacksDescription: string;
}

/** The engine's interaction policy: its own, with the account choice, our texts, and our consent rules. */
export function policy({
  lacksSecondFactor,
  lacksDescription,
}: PolicyDependencies): interactionPolicy.Prompt[] {
  const prompts = base();
  const login = prompts.get('login');
  const consent = prompts.get('consent');
  if (login === undefined || consent === undefined) throw new Error('the engine has no such prompts');
  login.checks.add(new Check('connection', LOGIN_REQUIRED, 'login_required', wrongConnection));
  login.checks.add(new Check('login_ticket', LOGIN_REQUIRED, 'login_required', bringsTicket));
  for (const check of login.checks) check.description = LOGIN_REQUIRED;
  login.checks.add(new Check(LACKS_SECOND_FACTOR, lacksDescription, 'login_required', lacksSecondFactor));
  // The engine would ask every application with a custom scheme for consent.
  consent.checks.remove('native_client_prompt');
  for (const check of consent.checks) check.description = CONSENT_REQUIRED;
  prompts.add(new Prompt({ name: 'select_account', requestable: true }), 0);
  return prompts;
}

/** A login ticket is used by the login page, even when somebody is logged in. */
function bringsTicket({ oidc }: KoaContextWithOIDC): boolean {
  const brings = readExtensions(oidc.params ?? {}).loginTicket !== undefined;
  return brings && oidc.result?.login === undefined ? Check.REQUEST_PROMPT : Check.NO_NEED_TO_PROMPT;
}

/** A session by another connection does not answer a request that names one. */
function wrongConnection({ oidc }: KoaContextWithOIDC): boolean {
  const { session, params, result } = oidc;
  // A login within this request was already judged.
  if (session?.accountId === undefined || result?.login !== undefined) return Check.NO_NEED_TO_PROMPT;
  return isByConnection(params?.connection, connectionOf(session))
    ? Check.NO_NEED_TO_PROMPT
    : Check.REQUEST_PROMPT;
}
