// Decides when the user is asked for something in the browser: to log in, to choose an account, to consent. The
// checks only read what browser-login.ts has worked out and change nothing. Steps that change something run last,
// in `lastSteps`.
import type Provider from 'oidc-provider';
import { errors, interactionPolicy, type KoaContextWithOIDC } from 'oidc-provider';
import { asksEachTime } from '../../records/clients/apis.ts';
import { hostOfCallback } from '../../records/clients/third-parties.ts';
import { consentId } from '../../records/state/engine.ts';
import { mayLogInTo } from '../../records/users/administrators.ts';
import { authenticationClasses } from '../../records/users/authentication-classes.ts';
import type { Store } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import { isUnattended } from '../../users/login.ts';
import type { Users } from '../../users/users.ts';
import {
  CLOSED,
  isOpenTo,
  isOrganizationOpenTo,
  matchesConnection,
  notMemberDescription,
  type Organizations,
  organizationOfSession,
} from '../admission/admission.ts';
import { transferOf } from '../admission/exchange-context.ts';
import { loginRequirements } from '../admission/second-factor.ts';
import { type AuthorizationDetail, detailsIn } from '../base/authorization-details.ts';
import {
  isOidcScope,
  OIDC_CONSENT_KEY,
  readExtensions,
  requestedAudience,
  toAudience,
} from '../base/request-extensions.ts';
import { lacksEssentialClass, requestedClaims, scopesOfClaims } from '../claims/claims.ts';
import { applicationSettings } from '../client/applications.ts';
import type { ServerLoginCallbacks } from '../client/server-login-callbacks.ts';
import { allowsDelegation } from '../session/session-transfer.ts';
import { connectionOf, presenceOf } from '../session/sessions.ts';
import type { BrowserLogins } from './browser-login.ts';
import type { LoginActions } from './login-actions.ts';

const { Check, Prompt, base } = interactionPolicy;

/** SDKs compare these descriptions of `login_required` and `consent_required`. */
const LOGIN_REQUIRED = 'Login required';
const CONSENT_REQUIRED = 'Consent required';

/** The reason of a login prompt for a session in which nobody was there, where the request needs the user. */
export const LACKS_USER = 'unattended';

/** The reason of a login prompt for a session that lacks a second factor. */
export const LACKS_SECOND_FACTOR = 'second_factor';

interface PolicyDependencies extends Pick<BrowserLogins, 'lacksSecondFactor'>, LastStepDependencies {
  config: Pick<Config, 'connectionsOf' | 'organization' | 'resourceServer' | 'settings'>;
  store: Store;
  serverLoginCallbacks: Pick<ServerLoginCallbacks, 'isWithoutConsent' | 'has' | 'actOf'>;
  organizations: Pick<Organizations, 'isMember'>;
  users: Pick<Users, 'identitiesOf'>;
}

/**
 * Builds the interaction policy: the engine's own prompts, with the choice of an account, our descriptions, and our
 * rules for consent.
 */
export function policy(deps: PolicyDependencies): interactionPolicy.Prompt[] {
  const { lacksSecondFactor, lacksFactorDescription, config, serverLoginCallbacks, organizations } = deps;
  const prompts = base();
  const login = prompts.get('login');
  const consent = prompts.get('consent');
  if (login === undefined || consent === undefined) throw new Error('the engine has no such prompts');
  login.checks.add(new Check('connection', LOGIN_REQUIRED, 'login_required', wrongConnection));
  const closed = hasClosedConnection(deps);
  login.checks.add(new Check('closed_connection', LOGIN_REQUIRED, 'login_required', closed));
  login.checks.add(new Check('directory', LOGIN_REQUIRED, 'login_required', wrongDirectory));
  const otherOrganization = wrongOrganization(organizations);
  login.checks.add(new Check('organization', LOGIN_REQUIRED, 'login_required', otherOrganization));
  login.checks.add(new Check('login_ticket', LOGIN_REQUIRED, 'login_required', hasUnusedTicket));
  login.checks.add(
    new Check('delegation', LOGIN_REQUIRED, 'login_required', refusesDelegatedSession(serverLoginCallbacks)),
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
  for (const [reason, check] of [
    [CONSENT_POLICY, requiresConsentEachTime(config, serverLoginCallbacks)],
    [STRANGER, isUnknownStranger(deps)],
  ] as const)
    consent.checks.add(new Check(reason, CONSENT_REQUIRED, 'consent_required', check, grantableScopes));
  for (const check of consent.checks) check.description = CONSENT_REQUIRED;
  login.checks.add(
    new Check(LACKS_USER, LOGIN_REQUIRED, 'login_required', lacksUser(serverLoginCallbacks, consent)),
  );
  prompts.add(new Prompt({ name: 'select_account', requestable: true }), 0);
  const asksFor = (when: string) =>
    new Check('organization', LOGIN_REQUIRED, 'login_required', lacksOrganization(when));
  prompts.add(new Prompt({ name: 'organization_name' }, asksFor('pre_login_prompt')), 0);
  const afterLogin = [...prompts].indexOf(login) + 1;
  prompts.add(new Prompt({ name: 'organization' }, asksFor('post_login_prompt')), afterLogin);
  for (const prompt of lastSteps(deps)) prompts.add(prompt);
  return prompts;
}

/** Whether an API of the request requires consent each time and the user has not been asked within this request. */
function requiresConsentEachTime(
  config: PolicyDependencies['config'],
  serverLoginCallbacks: PolicyDependencies['serverLoginCallbacks'],
) {
  return async ({ oidc }: KoaContextWithOIDC): Promise<boolean> => {
    // A login that we ask for ourselves is for no API, even where the tenant's default API is added to its request.
    const isInternal = serverLoginCallbacks.isWithoutConsent(String(oidc.params?.redirect_uri));
    if (isInternal || oidc.result?.consent !== undefined) return Check.NO_NEED_TO_PROMPT;
    const audiences = Object.keys(oidc.resourceServers ?? {}).map(toAudience);
    const apis = await Promise.all(audiences.map((audience) => config.resourceServer(audience)));
    return apis.some(asksEachTime) ? Check.REQUEST_PROMPT : Check.NO_NEED_TO_PROMPT;
  };
}

// docs/understand/decisions/authorize.md#a-strict-third-party-application-is-shown-to-each-user
/**
 * Whether a strict third-party application asks a user who was never asked for it, or any program on the user's device could
 * ask in its name (RFC 8252 §8.6): there only the user knows who began.
 */
function isUnknownStranger({ serverLoginCallbacks, store }: PolicyDependencies) {
  return async ({ oidc }: KoaContextWithOIDC): Promise<boolean> => {
    const { client, params = {}, result, account } = oidc;
    const callback = String(params.redirect_uri);
    const isAsked = result?.consent !== undefined || serverLoginCallbacks.isWithoutConsent(callback);
    if (isAsked || client === undefined || account === undefined) return Check.NO_NEED_TO_PROMPT;
    if (!applicationSettings(client).isStranger) return Check.NO_NEED_TO_PROMPT;
    const host = hostOfCallback(callback);
    if (host === undefined) return Check.REQUEST_PROMPT;
    const id = consentId(account.accountId, client.clientId);
    const { scopes = {}, hosts = [] } = (await store.collection('consents').get(id)) ?? {};
    // What a user has allowed is sent to no host that they have not seen: an application may have several.
    if (!hosts.includes(host)) return Check.REQUEST_PROMPT;
    const wanted = [OIDC_CONSENT_KEY, ...Object.keys(oidc.resourceServers ?? {})];
    return wanted.every((key) => scopes[key] !== undefined) ? Check.NO_NEED_TO_PROMPT : Check.REQUEST_PROMPT;
  };
}

/** Returns the scopes that the application can get of each API: what a page that shows the whole request may offer. */
function grantableScopes({ oidc }: KoaContextWithOIDC): Record<string, unknown> {
  const apis = Object.entries(oidc.resourceServers ?? {});
  return { grantable: Object.fromEntries(apis.map(([resource, api]) => [resource, [...api.scopes]])) };
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
function refusesDelegatedSession(serverLoginCallbacks: Pick<ServerLoginCallbacks, 'has'>) {
  return ({ oidc: { session, client, params = {}, result } }: KoaContextWithOIDC): boolean => {
    if (transferOf(session)?.act === undefined || client === undefined || result?.login !== undefined)
      return Check.NO_NEED_TO_PROMPT;
    return allowsDelegation(client, params, serverLoginCallbacks)
      ? Check.NO_NEED_TO_PROMPT
      : Check.REQUEST_PROMPT;
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
function lacksUser(
  serverLoginCallbacks: Pick<ServerLoginCallbacks, 'actOf'>,
  consent: interactionPolicy.Prompt,
) {
  return async (ctx: KoaContextWithOIDC): Promise<boolean> => {
    const { session, params = {}, prompts } = ctx.oidc;
    if (session?.accountId === undefined || !isUnattended({ presence: presenceOf(session) }))
      return Check.NO_NEED_TO_PROMPT;
    if (serverLoginCallbacks.actOf(String(params.redirect_uri)) !== undefined) return Check.REQUEST_PROMPT;
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

/**
 * A request is not answered by a session of a connection that is not enabled for its application, whoever began it; nor a
 * stranger's for an organization that is not open to strangers.
 */
function hasClosedConnection({ config, users }: Pick<PolicyDependencies, 'config' | 'users'>) {
  return async ({ oidc }: KoaContextWithOIDC): Promise<boolean> => {
    const { session, client, params, result } = oidc;
    if (session?.accountId === undefined || client === undefined) return Check.NO_NEED_TO_PROMPT;
    // What was closed while this request waited. Asking again would loop.
    const { organization } = loginRequirements(params);
    if (organization !== undefined && !(await isOrganizationOpenTo(config, client, organization)))
      throw new errors.AccessDenied(CLOSED);
    const login = {
      userId: session.accountId,
      connection: connectionOf(session),
      transfer: transferOf(session),
    };
    if (await isOpenTo({ config, users }, client.clientId, login)) return Check.NO_NEED_TO_PROMPT;
    if (result?.login !== undefined) throw new errors.AccessDenied(CLOSED);
    return Check.REQUEST_PROMPT;
  };
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

// The steps that run right before a request is answered, when nothing more has to be asked: the tenant's actions,
// which may ask for more themselves, and using up a pushed request. They are the last prompts of the engine's
// policy, because the engine offers no other hook there; it answers the request when none of them prompts.

interface LastStepDependencies {
  /** @see SecondFactor.description */
  lacksFactorDescription: string;
  /** @see PushedRequests.use */
  pushedRequests: { use(ctx: KoaContextWithOIDC): Promise<void> };
  loginActions: Pick<LoginActions, 'atAuthorization'>;
}

function lastSteps({
  lacksFactorDescription,
  pushedRequests,
  loginActions,
}: LastStepDependencies): interactionPolicy.Prompt[] {
  const use = new Check('request_uri', '', 'invalid_request_uri', async (ctx) => {
    await pushedRequests.use(ctx);
    return Check.NO_NEED_TO_PROMPT;
  });
  return [...actionPrompts(loginActions, lacksFactorDescription), new Prompt({ name: 'request_uri' }, use)];
}

/**
 * The prompts for what actions ask for: a second factor, a redirect, or a login as another user. The actions run
 * once for a request, however many of these prompts ask for their outcome.
 */
function actionPrompts(actions: Pick<LoginActions, 'atAuthorization'>, lacksFactorDescription: string) {
  const asks = (step: 'factor' | 'redirect' | 'primary') => async (ctx: KoaContextWithOIDC) =>
    (await actions.atAuthorization(ctx))?.step === step;
  const details = async (ctx: KoaContextWithOIDC) => ({
    actions: (await actions.atAuthorization(ctx))?.waiting,
  });
  const factor = [
    LACKS_SECOND_FACTOR,
    lacksFactorDescription,
    'login_required',
    asks('factor'),
    details,
  ] as const;
  // SDKs know this error for a silent request whose user would have to be redirected.
  const redirect = ['redirect', 'External interaction required', 'interaction_required'] as const;
  return [
    new Prompt({ name: 'login' }, new Check(...factor)),
    new Prompt({ name: 'redirect' }, new Check(...redirect, asks('redirect'), details)),
    new Prompt(
      { name: 'primary' },
      new Check('primary', LOGIN_REQUIRED, 'login_required', asks('primary'), details),
    ),
  ];
}

// What the consent prompt has to ask the user for.

type ConsentInteraction = Pick<InstanceType<Provider['Interaction']>, 'prompt' | 'params'>;

export interface MissingConsent {
  oidcScopes: string[];
  /** Scopes by API identifier. */
  apis: Record<string, string[]>;
  /** The requested authorization details (RFC 9396), and their API. */
  details: { audience: string | undefined; all: AuthorizationDetail[] };
}

/** The reason of a consent prompt for an API that requires consent each time. @see asksEachTime */
const CONSENT_POLICY = 'consent_policy';

/** The reason of a consent prompt for a third-party application that the user has to look at. */
const STRANGER = 'third_party';

export function missingConsent(interaction: ConsentInteraction): MissingConsent {
  const { missingOIDCScope = [], missingOIDCClaims = [] } = interaction.prompt.details as {
    missingOIDCScope?: string[];
    missingOIDCClaims?: string[];
  };
  const resources = resourceScopes(interaction);
  const oidcScopes = [...new Set([...missingOIDCScope, ...scopesOfClaims(missingOIDCClaims)])];
  // With `prompt=consent` nothing may be missing: then all that was requested is shown.
  const { params, prompt } = interaction;
  const all = detailsIn(params.authorization_details);
  const details = { audience: requestedAudience(params), all };
  const isMissing = oidcScopes.length > 0 || Object.keys(resources).length > 0;
  const isForDetails = all.length > 0 && !prompt.reasons.includes('consent_prompt');
  // With a consent policy everything is asked for again. If only the missing scopes were shown, the user would
  // allow the others unseen.
  const hasConsentPolicy = [CONSENT_POLICY, STRANGER].some((reason) => prompt.reasons.includes(reason));
  if (hasConsentPolicy || (!isMissing && !isForDetails)) return { ...requestedConsent(interaction), details };
  return { oidcScopes, apis: byAudience(resources), details };
}

function requestedConsent({ params, prompt }: ConsentInteraction): Omit<MissingConsent, 'details'> {
  const { grantable = {} } = prompt.details as { grantable?: Record<string, string[]> };
  const offered = typeof params.resource === 'string' ? grantable[params.resource] : undefined;
  const scopes = typeof params.scope === 'string' ? params.scope.split(' ') : [];
  const audience = requestedAudience(params);
  return {
    oidcScopes: [
      ...new Set([...scopes.filter(isOidcScope), ...scopesOfClaims(requestedClaims(params.claims))]),
    ],
    apis:
      audience === undefined
        ? {}
        : { [audience]: scopes.filter((scope) => !isOidcScope(scope) && offered?.includes(scope) !== false) },
  };
}

function byAudience(resources: Readonly<Record<string, string[]>>): Record<string, string[]> {
  return Object.fromEntries(
    Object.entries(resources).map(([resource, scopes]) => [
      toAudience(resource),
      scopes.filter((scope) => !isOidcScope(scope)),
    ]),
  );
}

/** Returns the API scopes without consent, by resource indicator. */
export function resourceScopes(interaction: ConsentInteraction): Record<string, string[]> {
  const { missingResourceScopes } = interaction.prompt.details as {
    missingResourceScopes?: Record<string, string[]>;
  };
  return missingResourceScopes ?? {};
}
