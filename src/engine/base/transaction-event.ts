// `event.transaction` of actions: what an authorization or token request asks for.
import type { Context } from 'koa';
import { byCanonicalTag, languagesOf, matchLanguage } from '../../http/languages.ts';
import type { Config } from '../../tenant/config.ts';
import { enabledLocales, FALLBACK } from '../../tenant/languages.ts';
import { detailsIn } from './authorization-details.ts';
import { upstreamParameters } from './request-extensions.ts';

interface Transaction {
  params: Readonly<Record<string, unknown>>;
  /** The protocol as the hosted service names it, such as `oidc-basic-profile`. */
  protocol: string;
  scopes: readonly string[];
}

/** Returns `event.transaction`. */
export function transactionOf(
  config: Pick<Config, 'settings'>,
  ctx: Context,
  { params, protocol, scopes }: Transaction,
): Record<string, unknown> {
  const textOf = (name: string) => (typeof params[name] === 'string' ? params[name] : undefined);
  const words = (name: string) => (textOf(name) ?? '').split(' ').filter((one) => one !== '');
  return {
    protocol,
    requested_scopes: scopes,
    acr_values: words('acr_values'),
    ui_locales: words('ui_locales'),
    locale: localeOf(config, ctx, textOf('ui_locales')),
    prompt: words('prompt'),
    redirect_uri: textOf('redirect_uri'),
    response_type: words('response_type'),
    response_mode: textOf('response_mode'),
    state: textOf('state'),
    login_hint: textOf('login_hint'),
    correlation_id: upstreamParameters(params).correlation_id,
    requested_authorization_details: detailsIn(params.authorization_details),
    metadata: {},
  };
}

/** Returns the language in which the tenant would answer a request. */
export function localeOf(config: Pick<Config, 'settings'>, ctx: Context, uiLocales?: string): string {
  const enabled = enabledLocales(config.settings().tenant);
  return matchLanguage(languagesOf(ctx, uiLocales), byCanonicalTag(enabled)) ?? enabled[0] ?? FALLBACK;
}
