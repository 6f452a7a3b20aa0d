// Decides when the user is asked for something in the browser: to log in, to choose an account, to consent. The
// checks only read what browser-login.ts has worked out and change nothing. Steps that change something run last,
// in last-steps.ts.
import { errors, interactionPolicy, type KoaContextWithOIDC } from 'oidc-provider';
import { mayLogInTo } from '../../records/administrators.ts';
import { asksEachTime } from '../../records/apis.ts';
import { authenticationClasses } from '../../records/authentication-classes.ts';
import type { Config } from '../../tenant/config.ts';
import { isUnattended } from '../../users/user-acts.ts';
import { matchesConnection } from '../admission/admission.ts';
import {
  notMemberDescription,
  type Organizations,
  organizationOfSession,
} from '../admission/organizations.ts';
import { transferOf } from '../admission/transferred-session.ts';
import { readExtensions } from '../base/request-extensions.ts';
import { toAudience } from '../base/requested-audience.ts';
import { lacksEssentialClass } from '../claims/essential-claims.ts';
import { applicationSettings } from '../client/applications.ts';
import type { OwnCallbacks } from '../client/own-callbacks.ts';
import { allowsDelegation } from '../session/session-transfer-checks.ts';
import { connectionOf, presenceOf } from '../session/user-session.ts';
import type { BrowserLogins } from './browser-login.ts';
import { CONSENT_POLICY } from './missing-consent.ts';

const { Check, Prompt, base } = interactionPolicy;

/** SDKs compare these descriptions of `login_required` and `consent_required`. */
export const LOGIN_REQUIRED = 'Login required';
const CONSENT_REQUIRED = 'Consent required';

/** The reason of a login prompt for a session in which nobody was there, where the request needs the user. */
export const LACKS_USER = 'unattended';

/** The reason of a login prompt for a session that lacks a second factor. */
export const LACKS_SECOND_FACTOR = 'second_factor';

interface PolicyDependencies extends Pick<BrowserLogins, 'lacksSecondFactor'> {
  config: Pick<Config, 'resourceServer' | 'settings'>;
  ownCallbacks: Pick<OwnCallbacks, 'isWithoutConsent' | 'has' | 'actOf'>;
  organizations: Pick<Organizations, 'isMember'>;
  /** @see SecondFactor.description */
  lacksFactorDescription: string;
  /** The steps that run when nothing more has to be asked (last-steps.ts). */
  lastSteps: readonly interactionPolicy.Prompt[];
}

/**
 * Builds the interaction policy: the engine's own prompts, with the choice of an account, our descriptions, and our
 * rules for consent.
 */
export function policy({
  lacksSecondFactor,
  lacksFactorDescription,
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
  login.checks.add(new Check('login_ticket', LOGIN_REQUIRED, 'login_required', hasUnusedTicket));
  login.checks.add(
    new Check('delegation', LOGIN_REQUIRED, 'login_required', refusesDelegatedSession(ownCallbacks)),
  );
  // The engine's checks would ask for a login again and again when the user cannot reach the class.
  for (const name of ['essential_acrs', 'essential_acr']) login.checks.remove(name);
  const lacksClass = (ctx: KoaContextWithOIDC) =>
    lacksEssentialClass(ctx, lacksSecondFactor(ctx), authenticationClasses(config.settings().tenant).isMet);
  login.checks.add(new Check('essential_acr', LOGIN_REQUIRED, 'login_required', lacksClass));
  for (const check of login.checks) check.description = LOGIN_REQUIRED;
  login.checks.add(
    new Check(LACKS_SECOND_FACTOR, lacksFactorDescription, 'login_required', lacksSecondFactor),
  );
  // The engine would ask every application with a custom scheme for consent.
  consent.checks.remove('native_client_prompt');
  const requiresConsent = requiresConsentEachTime(config, ownCallbacks);
  consent.checks.add(new Check(CONSENT_POLICY, CONSENT_REQUIRED, 'consent_required', requiresConsent));
  for (const check of consent.checks) check.description = CONSENT_REQUIRED;
  login.checks.add(new Check(LACKS_USER, LOGIN_REQUIRED, 'login_required', lacksUser(ownCallbacks, consent)));
  prompts.add(new Prompt({ name: 'select_account', requestable: true }), 0);
  const asksFor = (when: string) =>
    new Check('organization', LOGIN_REQUIRED, 'login_required', lacksOrganization(when));
  prompts.add(new Prompt({ name: 'organization_name' }, asksFor('pre_login_prompt')), 0);
  const afterLogin = [...prompts].indexOf(login) + 1;
  prompts.add(new Prompt({ name: 'organization' }, asksFor('post_login_prompt')), afterLogin);
  for (const prompt of lastSteps) prompts.add(prompt);
  return prompts;
}

/** Whether an API of the request requires consent each time and the user has not been asked within this request. */
function requiresConsentEachTime(
  config: PolicyDependencies['config'],
  ownCallbacks: PolicyDependencies['ownCallbacks'],
) {
  return async ({ oidc }: KoaContextWithOIDC): Promise<boolean> => {
    // A login that we ask for ourselves is for no API, even where the tenant's default API is added to its request.
    const isInternal = ownCallbacks.isWithoutConsent(String(oidc.params?.redirect_uri));
    if (isInternal || oidc.result?.consent !== undefined) return Check.NO_NEED_TO_PROMPT;
    const audiences = Object.keys(oidc.resourceServers ?? {}).map(toAudience);
    const apis = await Promise.all(audiences.map((audience) => config.resourceServer(audience)));
    return apis.some(asksEachTime) ? Check.REQUEST_PROMPT : Check.NO_NEED_TO_PROMPT;
  };
}

/**
 * A login ticket or a transferred login in the request goes to the login page even when the browser has a session.
 */
function hasUnusedTicket({ oidc }: KoaContextWithOIDC): boolean {
  const { loginTicket, handed } = readExtensions(oidc.params ?? {});
  const hasTicket = loginTicket !== undefined || handed !== undefined;
  return hasTicket && oidc.result?.login === undefined ? Check.REQUEST_PROMPT : Check.NO_NEED_TO_PROMPT;
}

/** A session in which somebody acts for the user only answers applications that take such sessions. */
function refusesDelegatedSession(ownCallbacks: Pick<OwnCallbacks, 'has'>) {
  return ({ oidc: { session, client, params = {}, result } }: KoaContextWithOIDC): boolean => {
    if (transferOf(session)?.act === undefined || client === undefined || result?.login !== undefined)
      return Check.NO_NEED_TO_PROMPT;
    return allowsDelegation(client, params, ownCallbacks) ? Check.NO_NEED_TO_PROMPT : Check.REQUEST_PROMPT;
  };
}

/**
 * The application requires an organization, the request names none, and this is when it is asked for.
 * @param when the value of `organization_require_behavior` that asks now.
 */
function lacksOrganization(when: string) {
  return ({ oidc: { client, params } }: KoaContextWithOIDC): boolean => {
    if (client === undefined || params?.organization !== undefined) return Check.NO_NEED_TO_PROMPT;
    const { organizationUsage: usage, organizationPrompt: prompt } = applicationSettings(client);
    return usage === 'require' && prompt === when ? Check.REQUEST_PROMPT : Check.NO_NEED_TO_PROMPT;
  };
}

/**
 * Whether a session may not answer a request for an organization. It may when its user is a member now and logged
 * in with a connection of the organization. A silent request also has to name the organization that the session was
 * last used for, and an invitation requires a new login.
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
    // The login was for this organization and the membership ended meanwhile. Asking again would loop.
    if (isNew) throw new errors.AccessDenied(notMemberDescription(organization));
    return Check.REQUEST_PROMPT;
  };
}

/**
 * Whether nobody was at the login of a session and the request is for something that only the user may do: for a
 * login that we ask for ourselves, or for consent. A login within this request was perhaps handed over.
 */
function lacksUser(ownCallbacks: Pick<OwnCallbacks, 'actOf'>, consent: interactionPolicy.Prompt) {
  return async (ctx: KoaContextWithOIDC): Promise<boolean> => {
    const { session, params = {}, prompts } = ctx.oidc;
    if (session?.accountId === undefined || !isUnattended({ presence: presenceOf(session) }))
      return Check.NO_NEED_TO_PROMPT;
    if (ownCallbacks.actOf(String(params.redirect_uri)) !== undefined) return Check.REQUEST_PROMPT;
    if (prompts.has('consent')) return Check.REQUEST_PROMPT;
    for (const { check } of consent.checks) if (await check(ctx)) return Check.REQUEST_PROMPT;
    return Check.NO_NEED_TO_PROMPT;
  };
}

/** An administrator's session only answers the console, and the console only accepts an administrator's session. */
function wrongDirectory({ oidc }: KoaContextWithOIDC): boolean {
  const { session, client, result } = oidc;
  // A login within this request was already judged.
  if (session?.accountId === undefined || result?.login !== undefined) return Check.NO_NEED_TO_PROMPT;
  return mayLogInTo(client?.clientId ?? '', { userId: session.accountId, connection: connectionOf(session) })
    ? Check.NO_NEED_TO_PROMPT
    : Check.REQUEST_PROMPT;
}

/** A request that names a connection is not answered by a session of another connection. */
function wrongConnection({ oidc }: KoaContextWithOIDC): boolean {
  const { session, params, result } = oidc;
  // A login within this request was already judged.
  if (session?.accountId === undefined || result?.login !== undefined) return Check.NO_NEED_TO_PROMPT;
  return matchesConnection(params?.connection, connectionOf(session))
    ? Check.NO_NEED_TO_PROMPT
    : Check.REQUEST_PROMPT;
}
