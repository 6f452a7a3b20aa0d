// Models of the consent and account pages.

import { type ReportingLiquid, TemplateFault } from '../../capabilities/liquid/liquid.ts';
import { declarePage, type Views } from '../../capabilities/pages/views.ts';
import { type DetailLine, detailLines, visibleDetail } from '../../engine/base/authorization-details.ts';
import { isOidcScope, OIDC_CONSENT_KEY } from '../../engine/base/request-extensions.ts';
import type { MissingConsent } from '../../engine/login/policy.ts';
import { isClientUrl } from '../../records/clients/registrations.ts';
import { isSelfRegistered, isStranger, recipientOf } from '../../records/clients/third-parties.ts';
import type { Client } from '../../records/collections.ts';
import type { Config } from '../../tenant/config.ts';
import { nameOf } from '../../users/profile.ts';
import type { User } from '../../users/user.ts';
import { type PageModel, pageModel, type RequestPage, stepPath } from './request-page.ts';

/** A scope: the message key of an OpenID Connect scope, or the description of an API's. */
export interface ShownScope {
  key?: string;
  text?: string;
  api?: string;
}

interface ConsentModel extends PageModel {
  /** Where the answer goes, if the application is a stranger's. */
  stranger?: ShownStranger | undefined;
  /** What it asks for; without what is in `allowed`. */
  scopes: ShownScope[];
  /** What it may do already, where it asks for more. */
  allowed?: ShownScope[];
  details: ShownDetail[];
  user: string;
}

/** What is certain of a third-party application, and whether it has given itself its name. */
export interface ShownStranger {
  host?: string;
  scheme?: string;
  /** The host whose document describes the application: it has its name from there. */
  documentHost?: string;
  isUnverified: boolean;
}

/** One of the `authorization_details` (RFC 9396): rendered by the API's template, or else listed in full. */
export interface ShownDetail {
  type: string;
  html?: string;
  lines: DetailLine[];
}

interface AccountModel extends PageModel {
  user: string;
  loginUrl: string;
}

export const LOGIN_CONSENT_PAGE = declarePage<ConsentModel>('login/consent');
export const LOGIN_ACCOUNT_PAGE = declarePage<AccountModel>('login/account');

export async function consentPage(
  page: RequestPage,
  deps: { config: Config; views: Pick<Views, 'liquid'> },
  user: User | undefined,
): Promise<ConsentModel> {
  const { details } = page.waiting.missing;
  const { asked, allowed } = setApart(page.waiting);
  return {
    ...pageModel(page, 'consent'),
    stranger: strangerOf(page),
    scopes: await shownScopes(deps.config, asked.oidcScopes, asked.apis),
    allowed: await shownScopes(deps.config, allowed.oidcScopes, allowed.apis),
    details: await shownDetails(page, deps, details),
    user: nameOf(user),
  };
}

type Scopes = Omit<MissingConsent, 'details'>;

// docs/understand/decisions/authorize.md#a-consent-page-sets-apart-what-is-new
/** Sets what an application may do already apart from what it asks for beyond that; nothing if it asks for nothing new. */
function setApart({ missing, allowed }: RequestPage['waiting']): { asked: Scopes; allowed: Scopes } {
  const before = (key: string) => allowed[key] ?? [];
  const isNew = (key: string) => (scope: string) => !before(key).includes(scope);
  const fresh: Scopes = {
    oidcScopes: missing.oidcScopes.filter(isNew(OIDC_CONSENT_KEY)),
    apis: mapped(missing.apis, (api, scopes) => scopes.filter(isNew(api))),
  };
  const isNothingNew = fresh.oidcScopes.length + Object.values(fresh.apis).flat().length === 0;
  if (isNothingNew) return { asked: missing, allowed: { oidcScopes: [], apis: {} } };
  const known: Scopes = {
    oidcScopes: before(OIDC_CONSENT_KEY).filter(isOidcScope),
    apis: mapped(missing.apis, (api) => before(api).filter((scope) => !isOidcScope(scope))),
  };
  return { asked: fresh, allowed: known };
}

const mapped = (apis: Scopes['apis'], change: (api: string, scopes: string[]) => string[]): Scopes['apis'] =>
  Object.fromEntries(Object.entries(apis).map(([api, scopes]) => [api, change(api, scopes)]));

// docs/understand/decisions/authorize.md#a-strict-third-party-application-is-shown-to-each-user
function strangerOf({ client, waiting }: RequestPage): ShownStranger | undefined {
  const recipient = recipientOf(waiting.params.redirect_uri ?? '');
  if (!isStranger(client) || recipient === undefined) return undefined;
  const { host, scheme } = { host: undefined, scheme: undefined, ...recipient };
  return {
    ...(host !== undefined && { host }),
    ...(scheme !== undefined && { scheme }),
    ...(isClientUrl(client.client_id) && { documentHost: new URL(client.client_id).host }),
    isUnverified: isSelfRegistered(client),
  };
}

/** @param apis scopes by the API's identifier. */
export async function shownScopes(
  config: Pick<Config, 'resourceServer'>,
  oidcScopes: readonly string[],
  apis: MissingConsent['apis'],
): Promise<ShownScope[]> {
  const apiScopes = await Promise.all(
    Object.entries(apis).map(async ([audience, scopes]) => {
      const api = await config.resourceServer(audience);
      return scopes.map((scope) => ({
        text: api?.scopes.find(({ value }) => value === scope)?.description ?? scope,
        api: api?.name ?? audience,
      }));
    }),
  );
  return [...oidcScopes.map((scope) => ({ key: `scope.${scope}` })), ...apiScopes.flat()];
}

/**
 * Returns the authorization details of a request (RFC 9396 §2) as a page shows them, each rendered by the template
 * of its type if that succeeds.
 */
export async function shownDetails(
  { client }: { client: Pick<Client, 'name'> },
  {
    config,
    views: { liquid },
  }: { config: Pick<Config, 'resourceServer' | 'settings'>; views: Pick<Views, 'liquid'> },
  { audience, all }: MissingConsent['details'],
): Promise<ShownDetail[]> {
  const identifier = audience ?? config.settings().tenant.default_audience;
  const api =
    identifier === undefined || all.length === 0 ? undefined : await config.resourceServer(identifier);
  return Promise.all(
    all.map(async (requested) => {
      const template = api?.authorization_details?.find((one) => one.type === requested.type)?.template;
      const detail = visibleDetail(requested);
      const { type } = detail;
      const variables = {
        authorization_detail: detail,
        type,
        client: { name: client.name },
        api: { name: api?.name },
      };
      // A template that fails must not hide what is requested.
      const html =
        template === undefined ? undefined : await detailText(liquid, { type, template, variables });
      return { type, lines: detailLines(detail), ...(html !== undefined && { html }) };
    }),
  );
}

/** Renders the template of a type of authorization details; undefined when it fails. */
async function detailText(
  liquid: ReportingLiquid,
  { type, template: source, variables }: { type: string; template: string; variables: object },
): Promise<string | undefined> {
  try {
    return await liquid.render({ kind: 'html', source, variables });
  } catch (thrown) {
    if (!(thrown instanceof TemplateFault)) throw thrown;
    liquid.report({ name: `authorization details ${type}`, source, fault: thrown.message });
    return undefined;
  }
}

/** Builds the model of the page that asks whether to continue as the logged-in user. */
export function accountPage(page: RequestPage, user: User | undefined): AccountModel {
  return { ...pageModel(page, 'account'), user: nameOf(user), loginUrl: stepPath(page.waiting, 'login') };
}
