// Customized login pages (docs/wire/legacy-pages.md), whose script calls /usernamepassword/login and the like. They run in
// our origin, so a content security policy limits them to the origins that the page names.
import type { Context } from 'koa';
import { toAudience } from '../../engine/audience.ts';
import { waitingState } from '../../engine/restarted-request.ts';
import { customPagePolicy } from '../../http/headers.ts';
import type { Random } from '../../runtime/random.ts';
import type { Config } from '../../tenant/config.ts';
import { CONFIG_PLACEHOLDER } from '../../tenant/pages.ts';
import type { RequestPage } from './request-page.ts';
import { settingsBase, tenantName } from './widget.ts';

export interface CustomPageDependencies {
  baseUrl: string;
  config: Config;
  random: Random;
}

/** Answers with the page for a waiting request. @param html as the operator wrote it. */
export function sendCustomPage(
  deps: CustomPageDependencies,
  ctx: Context,
  page: RequestPage,
  html: string,
): void {
  const nonce = deps.random(16).toString('hex');
  const { vendor_host: vendor } = deps.config.settings();
  ctx.set('Content-Type', 'text/html; charset=utf-8');
  ctx.set('Cache-Control', 'no-store');
  ctx.set(
    'Content-Security-Policy',
    customPagePolicy({
      nonce,
      sources: [`https://cdn.${vendor}`, ...namedOrigins(html)],
    }),
  );
  ctx.set('Cross-Origin-Opener-Policy', 'unsafe-none');
  ctx.set('Referrer-Policy', 'same-origin');
  ctx.body = withNonce(html, nonce).replaceAll(CONFIG_PLACEHOLDER, encode(configOf(deps, page)));
}

/** Encodes JSON as base64, which needs no escaping in HTML or in a script's string. */
function encode(config: object): string {
  return Buffer.from(JSON.stringify(config), 'utf8').toString('base64');
}

/** Adds the nonce to each script element; unquoted, so as not to break a script that writes one. */
function withNonce(html: string, nonce: string): string {
  return html.replace(/<script(?=[\s/>])/gi, (tag) => `${tag} nonce=${nonce}`);
}

const MAX_ORIGINS = 30;

/** Returns the origins of the URLs in a page. */
function namedOrigins(html: string): string[] {
  const origins = [
    ...html.matchAll(/(?:https:)?\/\/((?:[a-z0-9-]+\.)+[a-z0-9-]+(?::\d{1,5})?)(?=[/"'\s?#)<]|$)/gi),
  ];
  return [...new Set(origins.map(([, host = '']) => `https://${host.toLowerCase()}`))].slice(0, MAX_ORIGINS);
}

/** Parameters of the request that the page's SDK continues with. */
const PARAMETERS = [
  'response_type',
  'response_mode',
  'scope',
  'nonce',
  'code_challenge',
  'code_challenge_method',
  'prompt',
  'max_age',
  'acr_values',
  'login_hint',
  'screen_hint',
  'ui_locales',
  'display',
  'organization',
  'connection_scope',
] as const;

/** Returns the value of `@@config@@`, with the member names of the hosted service. */
function configOf({ baseUrl, config }: CustomPageDependencies, page: RequestPage): object {
  const { pending, client, csrf } = page;
  const { params } = pending;
  const { branding, vendor_host: vendor } = config.settings();
  const options = {
    protocol: 'oauth2',
    ...Object.fromEntries(
      PARAMETERS.flatMap((name) => (params[name] === undefined ? [] : [[name, params[name]]])),
    ),
    ...(params.resource !== undefined && { audience: toAudience(params.resource) }),
    // Names the waiting request; the page never sees the application's own state.
    state: waitingState(pending.uid),
    _csrf: csrf,
    _intstate: 'deprecated',
  };
  return {
    icon: client.logo_uri ?? branding.logo_url ?? '',
    assetsUrl: '',
    auth0Domain: new URL(baseUrl).host,
    auth0Tenant: tenantName(baseUrl),
    clientConfigurationBaseUrl: settingsBase(baseUrl, params.organization),
    callbackOnLocationHash: params.response_type?.split(' ').some((type) => type !== 'code') === true,
    callbackURL: params.redirect_uri,
    cdn: `https://cdn.${vendor}/`,
    clientID: client.client_id,
    connection: params.connection ?? null,
    prompt: params.prompt,
    dict: { signin: { title: client.name } },
    extraParams: { ...pending.upstream, ...options },
    internalOptions: options,
    isThirdPartyClient: !client.is_first_party,
    authorizationServer: { url: baseUrl, issuer: `${baseUrl}/` },
    colors: branding.colors,
  };
}
