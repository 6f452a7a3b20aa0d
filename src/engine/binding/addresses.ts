// The addresses that the tenant is served at: its own, those of its custom domains, and the one of mutual TLS. Each endpoint
// has the same path at all of them.
import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import type { Config } from '../../tenant/config.ts';
import { urlAtProofOrigin } from './proof-origin.ts';

/** The members of the engine's request class that are changed here. */
export interface RequestClass {
  prototype: {
    clientJwtAuthExpectedAudience(this: { ctx: { path: string } }): Set<string>;
    urlFor(name: string, options?: Record<string, unknown>): string;
  };
}

/** Teaches the engine the origins beside the issuer's own. @param model the engine's request class. */
export function adaptAddresses(
  { prototype }: RequestClass,
  provider: Provider,
  config: Pick<Config, 'customOrigins'>,
): void {
  // Links are made from the issuer, never from a request's Host header. The engine asks for the URL of its own
  // route without options when it verifies a DPoP proof, which may have been made for a custom domain.
  prototype.urlFor = function urlFor(this: { route?: string; ctx: Context }, name, options) {
    const address = provider.urlFor(name, options);
    return options === undefined && name === this.route
      ? urlAtProofOrigin(this.ctx, config.customOrigins(), address)
      : address;
  } as RequestClass['prototype']['urlFor'];

  const { clientJwtAuthExpectedAudience } = prototype;
  const { origin: own } = new URL(provider.issuer);
  prototype.clientJwtAuthExpectedAudience = function audiences(this: { ctx: { path: string } }) {
    const accepted = clientJwtAuthExpectedAudience.call(this).add(provider.urlFor('token'));
    // The URL of the requested endpoint, which may be one of ours (CIBA Core §7.1).
    accepted.add(`${own}${this.ctx.path}`);
    const paths = [...accepted].filter((one) => one !== provider.issuer).map((one) => new URL(one).pathname);
    for (const origin of config.customOrigins()) for (const path of paths) accepted.add(`${origin}${path}`);
    // SDKs sign assertions for the issuer, with or without its slash.
    return accepted.add(provider.issuer.replace(/\/$/, ''));
  };
}
