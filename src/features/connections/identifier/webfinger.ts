// WebFinger (RFC 7033): applications ask whether e-mail addresses of a domain have an enterprise connection here, before they
// send a user with a `login_hint`.

import type { Context } from 'koa';
import { z } from 'zod';
import { requiredField, textField } from '../../../http/body-fields.ts';
import { AuthError, oauthShape } from '../../../http/errors.ts';
import { optional, required } from '../../../http/parameter-schemas.ts';
import type { Connection } from '../../../records/collections.ts';
import { connectionPurposes } from '../../../records/connections.ts';
import { canonicalDomain } from '../../../records/email.ts';
import { enabledConnectionsOf } from '../../../records/organizations.ts';
import type { Config } from '../../../tenant/config.ts';
import { homeRealmOf, isEnterprise, type UsableConnection } from '../home-realm.ts';
import { strategyOf } from '../strategies.ts';

export interface WebFingerDependencies {
  config: Pick<Config, 'connections' | 'organizationOfDomain'>;
  issuer: string;
}

/** The link relation of an OpenID issuer (OpenID Connect Discovery 1.0 §2). */
const ISSUER = 'http://openid.net/specs/connect/1.0/issuer';

/** The resource by which SDKs name a domain. */
const RESOURCE = /^urn:auth0:discovery:domain:([^:/?#@\s]{1,253})$/i;

const query = z.object({
  resource: required('`urn:auth0:discovery:domain:` and the domain.'),
  rel: optional(`\`${ISSUER}\`: other relations have no links here.`),
});

const answer = z.object({
  subject: z.string().describe('The requested resource.'),
  links: z
    .array(z.object({ rel: z.string(), href: z.string() }))
    .describe('The issuer that users of the domain log in with.'),
});

/** The endpoint `GET /.well-known/webfinger`. */
export const webFinger = {
  limit: 'discovery',
  cors: 'any',
  errors: oauthShape,
  summary: 'Whether addresses of a domain belong to an enterprise connection (WebFinger)',
  query,
  answers: { 200: { description: 'They do (404 if not)', body: answer } },
  handle: async ({ config, issuer }: WebFingerDependencies, ctx: Context) => {
    const resource = requiredField(ctx.query, 'resource');
    const rel = textField(ctx.query, 'rel') ?? ISSUER;
    const [, named] = RESOURCE.exec(resource) ?? [];
    const domain = named === undefined ? undefined : canonicalDomain(named);
    if (domain === undefined || !(await hasHomeRealm(config, domain))) {
      throw new AuthError(404, 'not_found', 'There is no connection for addresses of this domain.');
    }
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { subject: resource, links: rel === ISSUER ? [{ rel, href: issuer }] : [] };
    ctx.type = 'application/jrd+json';
  },
} as const;

/** Whether addresses of a domain lead to an enterprise connection in use, by its own domains or those of an organization. */
async function hasHomeRealm(config: WebFingerDependencies['config'], domain: string): Promise<boolean> {
  const address = `somebody@${domain}`;
  const usable = (await config.connections()).filter(isInUse).flatMap(withStrategy);
  const organization = await config.organizationOfDomain(domain);
  const enabled = enabledConnectionsOf(organization ?? {});
  const ofOrganization = usable.filter(({ connection: { id } }) =>
    enabled.some(({ connection_id }) => connection_id === id),
  );
  const homeRealm =
    homeRealmOf(usable, undefined, address) ?? homeRealmOf(ofOrganization, organization, address);
  return homeRealm !== undefined && isEnterprise(homeRealm.connection);
}

function isInUse(connection: Connection): boolean {
  const { enabled_clients, is_domain_connection } = connection;
  return (
    connectionPurposes(connection).logsIn && (enabled_clients.length > 0 || is_domain_connection === true)
  );
}

function withStrategy(connection: Connection): UsableConnection[] {
  const strategy = strategyOf(connection);
  return strategy === undefined ? [] : [{ connection, strategy }];
}
