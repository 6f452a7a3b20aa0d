// The routes of our side of SAML connections.
import type { Context } from 'koa';
import { z } from 'zod';
import { AuthError } from '../../http/errors.ts';
import type { RouteDeclarations } from '../../http/routes.ts';
import type { Config } from '../../tenant/config.ts';
import { strategyOf } from '../strategies.ts';
import { serviceProviderMetadata } from './metadata.ts';
import type { OwnDependencies } from './service-provider.ts';
import { isSaml } from './strategy.ts';

export interface SamlUpstreamDependencies extends OwnDependencies {
  config: Config;
}

const samlp = { limit: 'samlp', cors: 'none', errors: 'page' } as const;

/** The routes. */
export const samlUpstreamRoutes: RouteDeclarations<SamlUpstreamDependencies> = {
  'GET|HEAD /samlp/metadata': {
    ...samlp,
    summary: 'The metadata of this server as the service provider of a connection',
    query: z.object({ connection: z.string().describe('The name of a SAML connection.') }),
    answers: { 200: 'Metadata in XML (SAML Metadata §2.4.4)' },
    handle: sendMetadata,
  },
};

async function sendMetadata(deps: SamlUpstreamDependencies, ctx: Context): Promise<void> {
  const { connection: name } = ctx.query;
  const connection = typeof name === 'string' ? await deps.config.connection(name) : undefined;
  if (connection === undefined || !isSaml(strategyOf(connection))) {
    throw new AuthError(404, 'not_found', 'There is no SAML connection of this name.');
  }
  const document = await serviceProviderMetadata(deps, connection);
  ctx.set('Content-Type', 'application/xml; charset=utf-8');
  ctx.set('Cache-Control', 'public, max-age=300');
  ctx.body = document;
}
