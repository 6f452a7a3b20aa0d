// Home realm discovery on the login page: an e-mail address leads to the connection of its domain, or to the password form.
// The answer depends on the domain alone, so it does not reveal whether there is an account.
import type { Context } from 'koa';
import { z } from 'zod';
import { engineLimits } from '../../../engine/base/engine-declaration.ts';
import { feature } from '../../../engine/provider/feature.ts';
import { AuthError, oauthShape } from '../../../http/errors.ts';
import { optional, required } from '../../../http/parameter-schemas.ts';
import { formFields, requiredField, textField } from '../../../http/server/body.ts';
import { PAGE } from '../../../http/server/router.ts';
import { canonicalDomain } from '../../../records/base/email.ts';
import type { Connection } from '../../../records/collections.ts';
import { connectionPurposes } from '../../../records/connections/connections.ts';
import { firstCode } from '../../../records/database-options.ts';
import { enabledConnectionsOf } from '../../../records/users/organizations.ts';
import type { Config } from '../../../tenant/config.ts';
import { waitsForLogin } from '../../flow/finish.ts';
import type { ShowNext } from '../../flow/flow-routes.ts';
import { openRequestPage, type RequestPage, stepPath } from '../../flow/request-page.ts';
import { codeStep } from '../passwordless/session-code.ts';
import {
  asksIdentifierFirst,
  connectionOf,
  homeRealmOf,
  isEnterprise,
  isHomeRealm,
  type UsableConnection,
} from '../resolve.ts';
import { strategyOf } from '../strategies.ts';
import { type ProviderRedirectDependencies, redirectToProvider } from '../upstream/redirect-to-provider.ts';
import { showIdentifier } from './identifier-page.ts';

// WebFinger (RFC 7033): applications ask whether e-mail addresses of a domain have an enterprise connection here, before they
// send a user with a `login_hint`.
// docs/understand/decisions/connections.md#webfinger-answers-for-the-whole-tenant

interface WebFingerDependencies {
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
const webFinger = {
  limit: engineLimits.discovery,
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

interface IdentifierDependencies extends ProviderRedirectDependencies, Pick<WebFingerDependencies, 'issuer'> {
  showNext: ShowNext;
}

/** Characters: the longest e-mail address (RFC 5321 §4.5.3.1). Other identifiers are shorter. */
const MAX_IDENTIFIER_LENGTH = 254;

export const identifier = feature<IdentifierDependencies>({
  name: 'identifier',
  routes: {
    'GET /u/:uid/identifier': {
      ...PAGE,
      handle: async (deps, ctx) => deps.showNext(ctx, await openRequestPage(deps, ctx), 'identifier'),
    },
    'POST /u/:uid/identifier': { ...PAGE, handle: handleIdentifier },
    'GET|HEAD /.well-known/webfinger': webFinger,
  },
});

async function handleIdentifier(deps: IdentifierDependencies, ctx: Context): Promise<void> {
  const page = await openRequestPage(deps, ctx);
  deps.csrf.verify(ctx);
  const { waiting } = page;
  if (!waitsForLogin(waiting) || !(await asksIdentifierFirst(deps.config, page))) {
    return deps.showNext(ctx, page);
  }
  const text = formFields(ctx, 'identifier').identifier.trim().slice(0, MAX_IDENTIFIER_LENGTH);
  const showError = (alert: string) => showIdentifier(deps, ctx, page, { identifier: text, alert });
  if (text === '') return showError('identifier.missing');
  const found = await connectionOf(deps.config, page, text);
  if (found === undefined) return deps.showNext(ctx, page);
  const { connection, strategy } = found;
  if (strategy.page === 'redirect') {
    // All connections are at external providers, and the address has the domain of none of them.
    if (!(await isHomeRealm(deps.config, page, connection, text))) return showError('identifier.unknown');
    return redirectToProvider(deps, ctx, withLoginHint(page, text), { connection, strategy });
  }
  await deps.waitingRequests.remember(ctx, { ...waiting.remembered, identifier: text });
  ctx.status = 303;
  const code = strategy.page === 'form' ? firstCode(connection, text) : undefined;
  const form = code === undefined ? 'login' : codeStep(connection, code);
  ctx.redirect(stepPath(waiting, strategy.page === 'form' ? form : strategy.step(connection)));
}

function withLoginHint(page: RequestPage, identifier: string): RequestPage {
  const { waiting } = page;
  return { ...page, waiting: { ...waiting, params: { ...waiting.params, login_hint: identifier } } };
}
