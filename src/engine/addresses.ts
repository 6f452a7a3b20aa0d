// The addresses that the tenant is served at: its own, those of its custom domains, and the one of mutual TLS. Each endpoint
// has the same path at all of them.
import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import type { Config } from '../tenant/config.ts';
import { atOriginOfProof } from './address-of-proof.ts';

/** The engine's class of requests, as far as it is adapted here. */
export interface RequestClass {
  prototype: {
    clientJwtAuthExpectedAudience(this: { ctx: { path: string } }): Set<string>;
    urlFor(name: string, options?: Record<string, unknown>): string;
  };
}

/** Has the engine know of the addresses beside the issuer's own. @param model its class of requests. */
export function adaptAddresses(
  { prototype }: RequestClass,
  provider: Provider,
  config: Pick<Config, 'customOrigins'>,
): void {
  // Links are made from the issuer, never from a request's Host header. A DPoP proof may have been made for a custom domain:
  // the engine asks for the address of its route without options then.
  prototype.urlFor = function urlFor(this: { route?: string; ctx: Context }, name, options) {
    const address = provider.urlFor(name, options);
    return options === undefined && name === this.route
      ? atOriginOfProof(this.ctx, config.customOrigins(), address)
      : address;
  } as RequestClass['prototype']['urlFor'];

  const { clientJwtAuthExpectedAudience } = prototype;
  const { origin: own } = new URL(provider.issuer);
  prototype.clientJwtAuthExpectedAudience = function audiences(this: { ctx: { path: string } }) {
    const accepted = clientJwtAuthExpectedAudience.call(this).add(provider.urlFor('token'));
    // The endpoint that is asked, which may be one of ours (CIBA Core §7.1).
    accepted.add(`${own}${this.ctx.path}`);
    const paths = [...accepted].filter((one) => one !== provider.issuer).map((one) => new URL(one).pathname);
    for (const origin of config.customOrigins()) for (const path of paths) accepted.add(`${origin}${path}`);
    // SDKs sign assertions for the issuer, with or without its slash.
    return accepted.add(provider.issuer.replace(/\/$/, ''));
  };
}
