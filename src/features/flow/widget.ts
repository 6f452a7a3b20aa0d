// The resources that the login widget loads, in an application's page or a customized login page
// (docs/reference/wire/legacy-pages.md): public data about one application.
import type { Context } from 'koa';
import { z } from 'zod';
import { engineLimits } from '../../engine/base/engine-declaration.ts';
import { AuthError, oauthShape } from '../../http/errors.ts';
import { countryOf } from '../../http/languages.ts';
import { httpLimits } from '../../http/limits.ts';
import { jsonForScript } from '../../http/script.ts';
import type { RouteDeclarations } from '../../http/server/router.ts';
import { firstAddress } from '../../records/clients/allowed-urls.ts';
import type { Config } from '../../tenant/config.ts';

export interface WidgetDependencies {
  baseUrl: string;
  config: Config;
  describeConnections(clientId: string, organization?: string): Promise<readonly object[]>;
}

const widgetCall = { limit: httpLimits.other, cors: 'applications', errors: oauthShape } as const;

// docs/understand/decisions/login-pages.md#there-are-no-bot-challenges
/** The route that asks whether a captcha is required. It never is. */
const challenge = {
  ...widgetCall,
  summary: 'Whether a challenge (captcha) is needed: never',
  answers: { 200: { description: 'None', body: z.object({ required: z.literal(false) }) } },
  handle: (_deps: WidgetDependencies, ctx: Context) => {
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { required: false };
  },
} as const;

export const widgetRoutes: RouteDeclarations<WidgetDependencies> = {
  'GET|HEAD /client/:file': {
    limit: engineLimits.discovery,
    cors: 'any',
    errors: oauthShape,
    summary: "`<client_id>.js`: an application's settings, for the login widget",
    answers: { 200: { description: 'A script', body: z.string(), type: 'application/javascript' } },
    handle: sendSettings,
  },
  'GET|HEAD /organizations/:organization/client/:file': {
    limit: engineLimits.discovery,
    cors: 'any',
    errors: oauthShape,
    summary: '`<client_id>.js` with only the connections of an organization',
    answers: { 200: { description: 'A script', body: z.string(), type: 'application/javascript' } },
    handle: sendSettings,
  },
  'GET /user/geoloc/country': {
    ...widgetCall,
    summary: 'The country whose phone prefix is preselected in a form, by the language of the browser',
    answers: { 200: { description: 'A code of ISO 3166-1', body: z.object({ countryCode: z.string() }) } },
    handle: (_deps, ctx) => sendCountry(ctx),
  },
  'GET /user/ssodata': {
    ...widgetCall,
    cors: 'none',
    summary: 'Whether a login page may offer to continue as the logged-in user: no',
    answers: { 200: { description: 'No', body: z.object({ sso: z.literal(false) }) } },
    handle: (_deps, ctx) => sendLastLogin(ctx),
  },
  'POST /usernamepassword/challenge': challenge,
  'POST /dbconnections/signup/challenge': challenge,
  'POST /dbconnections/change_password/challenge': challenge,
  'POST /passwordless/challenge': challenge,
};

/** Returns the tenant's name for the widget: the first label of the host. */
export function tenantName(baseUrl: string): string {
  return new URL(baseUrl).hostname.split('.')[0] ?? '';
}

// docs/understand/decisions/organizations.md#the-login-widget-of-a-customized-page-reads-its-settings-below-the-organization
/** @param organization the id of the request's organization. */
export function settingsBase(baseUrl: string, organization: string | undefined): string {
  return organization === undefined
    ? `${baseUrl}/`
    : `${baseUrl}/organizations/${encodeURIComponent(organization)}/`;
}

// docs/understand/decisions/login-pages.md#clientclient_idjs-describes-what-the-login-forms-of-one-application-need
/** Handles `GET /client/<client_id>.js`: the application's settings as a script, which pages of any origin load. */
async function sendSettings(deps: WidgetDependencies, ctx: Context): Promise<void> {
  const clientId = /^(.+)\.js$/.exec(String(ctx.params.file))?.[1];
  const client = clientId === undefined ? undefined : await deps.config.client(clientId);
  if (client === undefined) throw new AuthError(404, 'not_found', 'There is no such application.');
  const { organization } = ctx.params as { organization?: string };
  const settings = {
    id: client.client_id,
    tenant: tenantName(deps.baseUrl),
    callback: firstAddress(client.callbacks),
    strategies: await deps.describeConnections(client.client_id, organization),
  };
  ctx.set('Cache-Control', 'public, max-age=15, stale-while-revalidate=15');
  ctx.set('Cross-Origin-Resource-Policy', 'cross-origin');
  ctx.set('Content-Type', 'application/javascript; charset=utf-8');
  ctx.body = `Auth0.setClient(${jsonForScript(settings)});`;
}

// docs/understand/decisions/login-pages.md#userssodata-returns-sso-false
/**
 * Handles `GET /user/ssodata`: whether to offer the logged-in user. Always no, because a login page is only shown
 * when the session does not suffice.
 */
function sendLastLogin(ctx: Context): void {
  ctx.set('Cache-Control', 'no-store');
  ctx.body = { sso: false };
}

// docs/understand/decisions/login-pages.md#usergeoloccountry-uses-the-browsers-language
/**
 * Handles `GET /user/geoloc/country`: the default country of phone numbers, by the browser's language. IP addresses
 * are not located.
 */
function sendCountry(ctx: Context): void {
  ctx.vary('Accept-Language');
  ctx.set('Cache-Control', 'private, max-age=3600');
  ctx.body = { countryCode: countryOf([ctx.get('Accept-Language')]) };
}
