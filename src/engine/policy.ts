// When the browser's user is asked for something: log in, choose an account, consent. The checks here look at what is known of a
// request and change nothing; what they need was worked out before (browser-login.ts). What is done once nobody is asked for anything
// more, and changes something, is in last-steps.ts.
import { errors, interactionPolicy, type KoaContextWithOIDC } from 'oidc-provider';
import { mayLogInTo } from '../records/administrators.ts';
import { asksEachTime } from '../records/apis.ts';
import type { Config } from '../tenant/config.ts';
import { isByConnection } from './admission.ts';
import { applicationSettings } from './applications.ts';
import { toAudience } from './audience.ts';
import { type BrowserLogins, connectionOf } from './browser-login.ts';
import { lacksEssentialClass } from './essential-claims.ts';
import { transferOf } from './handed-over.ts';
import { CONSENT_POLICY } from './missing-consent.ts';
import { notPart, type Organizations, organizationOfSession } from './organizations.ts';
import type { OwnCallbacks } from './own-callbacks.ts';
import { readExtensions } from './request-extensions.ts';
import { takesDelegation } from './session-transfer-use.ts';

const { Check, Prompt, base } = interactionPolicy;

/** The descriptions of login_required and consent_required that SDKs know. */
export const LOGIN_REQUIRED = 'Login required';
const CONSENT_REQUIRED = 'Consent required';

/** Why a session is not enough: it lacks a second factor. */
export const LACKS_SECOND_FACTOR = 'second_factor';

interface PolicyDependencies extends Pick<BrowserLogins, 'lacksSecondFactor'> {
  config: Pick<Config, 'resourceServer'>;
  ownCallbacks: Pick<OwnCallbacks, 'isWithoutConsent' | 'has'>;
  organizations: Pick<Organizations, 'isMember'>;
  /** @see SecondFactor.description */
  lacksDescription: string;
  /** What is done when nobody is asked for anything more (last-steps.ts). */
  lastSteps: readonly interactionPolicy.Prompt[];
}

/** The engine's interaction policy: its own, with the account choice, our texts, and our consent rules. */
export function policy({
  lacksSecondFactor,
  lacksDescription,
  config,
  ownCallbacks,
  organizations,
  lastSteps,
}: PolicyDependencies): interactionPolicy.Prompt[] {
  const prompts = base();
  const login = prompts.get('login');
  const consent = prompts.get('consent');
  if (login === undefined || consent === undefined) throw new Error('the engine has no such prompts');
  login.checks.add(new Check('connection', LOGIN_REQUIRED, 'login_required', wrongConnection));
  login.checks.add(new Check('directory', LOGIN_REQUIRED, 'login_required', wrongDirectory));
  const otherOrganization = wrongOrganization(organizations);
  login.checks.add(new Check('organization', LOGIN_REQUIRED, 'login_required', otherOrganization));
  login.checks.add(new Check('login_ticket', LOGIN_REQUIRED, 'login_required', bringsTicket));
  login.checks.add(
    new Check('delegation', LOGIN_REQUIRED, 'login_required', isDelegatedElsewhere(ownCallbacks)),
  );
  // The engine would ask for one login after another.
  for (const name of ['essential_acrs', 'essential_acr']) login.checks.remove(name);
  const lacksClass = (ctx: KoaContextWithOIDC) => lacksEssentialClass(ctx, lacksSecondFactor(ctx));
  login.checks.add(new Check('essential_acr', LOGIN_REQUIRED, 'login_required', lacksClass));
  for (const check of login.checks) check.description = LOGIN_REQUIRED;
  login.checks.add(new Check(LACKS_SECOND_FACTOR, lacksDescription, 'login_required', lacksSecondFactor));
  // The engine would ask every application with a custom scheme for consent.
  consent.checks.remove('native_client_prompt');
  const isAsked = isAskedAgain(config, ownCallbacks);
  consent.checks.add(new Check(CONSENT_POLICY, CONSENT_REQUIRED, 'consent_required', isAsked));
  for (const check of consent.checks) check.description = CONSENT_REQUIRED;
  prompts.add(new Prompt({ name: 'select_account', requestable: true }), 0);
  const asksFor = (when: string) =>
    new Check('organization', LOGIN_REQUIRED, 'login_required', lacksOrganization(when));
  prompts.add(new Prompt({ name: 'organization_name' }, asksFor('pre_login_prompt')), 0);
  const afterLogin = [...prompts].indexOf(login) + 1;
  prompts.add(new Prompt({ name: 'organization' }, asksFor('post_login_prompt')), afterLogin);
  for (const prompt of lastSteps) prompts.add(prompt);
  return prompts;
}

/** An API of the request has its users asked each time, and they have not been asked within this request. */
function isAskedAgain(
  config: PolicyDependencies['config'],
  ownCallbacks: PolicyDependencies['ownCallbacks'],
) {
  return async ({ oidc }: KoaContextWithOIDC): Promise<boolean> => {
    // A login of our own is for no API, though the request has the tenant's usual one.
    const isInternal = ownCallbacks.isWithoutConsent(String(oidc.params?.redirect_uri));
    if (isInternal || oidc.result?.consent !== undefined) return Check.NO_NEED_TO_PROMPT;
    const audiences = Object.keys(oidc.resourceServers ?? {}).map(toAudience);
    const apis = await Promise.all(audiences.map((audience) => config.resourceServer(audience)));
    return apis.some(asksEachTime) ? Check.REQUEST_PROMPT : Check.NO_NEED_TO_PROMPT;
  };
}

/** A login that a request brings is used by the login page, even when somebody is logged in. */
function bringsTicket({ oidc }: KoaContextWithOIDC): boolean {
  const { loginTicket, handed } = readExtensions(oidc.params ?? {});
  const brings = loginTicket !== undefined || handed !== undefined;
  return brings && oidc.result?.login === undefined ? Check.REQUEST_PROMPT : Check.NO_NEED_TO_PROMPT;
}

/** A session in which somebody acts for its user answers the requests alone of applications that take such sessions. */
function isDelegatedElsewhere(ownCallbacks: Pick<OwnCallbacks, 'has'>) {
  return ({ oidc: { session, client, params = {}, result } }: KoaContextWithOIDC): boolean => {
    if (transferOf(session)?.act === undefined || client === undefined || result?.login !== undefined)
      return Check.NO_NEED_TO_PROMPT;
    return takesDelegation(client, params, ownCallbacks) ? Check.NO_NEED_TO_PROMPT : Check.REQUEST_PROMPT;
  };
}

/** An organization is required, and is asked for now. */
function lacksOrganization(when: string) {
  return ({ oidc: { client, params } }: KoaContextWithOIDC): boolean => {
    if (client === undefined || params?.organization !== undefined) return Check.NO_NEED_TO_PROMPT;
    const { organizationUsage: usage, organizationPrompt: prompt } = applicationSettings(client);
    return usage === 'require' && prompt === when ? Check.REQUEST_PROMPT : Check.NO_NEED_TO_PROMPT;
  };
}

/**
 * Whether a session answers a request for an organization: its user is a member at this moment, and came by a connection
 * of the organization. A silent request has to be for the organization that the session was last used for; an
 * invitation takes a login of its own.
 */
function wrongOrganization(organizations: Pick<Organizations, 'isMember'>) {
  return async ({ oidc }: KoaContextWithOIDC): Promise<boolean> => {
    const { session, params, result, prompts } = oidc;
    const organization = params?.organization;
    if (session?.accountId === undefined || typeof organization !== 'string') return Check.NO_NEED_TO_PROMPT;
    const isNew = result?.login !== undefined;
    const isOther = prompts.has('none') && organizationOfSession(session) !== organization;
    if (!isNew && (isOther || params?.invitation !== undefined)) return Check.REQUEST_PROMPT;
    const connection = connectionOf(session) ?? '';
    if (await organizations.isMember(organization, session.accountId, connection))
      return Check.NO_NEED_TO_PROMPT;
    // The login was for it and is no more: asking again would go round and round.
    if (isNew) throw new errors.AccessDenied(notPart(organization));
    return Check.REQUEST_PROMPT;
  };
}

/** The session of an administrator answers no application's request, and that of nobody else the console's. */
function wrongDirectory({ oidc }: KoaContextWithOIDC): boolean {
  const { session, client, result } = oidc;
  // A login within this request was already judged.
  if (session?.accountId === undefined || result?.login !== undefined) return Check.NO_NEED_TO_PROMPT;
  return mayLogInTo(client?.clientId ?? '', { userId: session.accountId, connection: connectionOf(session) })
    ? Check.NO_NEED_TO_PROMPT
    : Check.REQUEST_PROMPT;
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
