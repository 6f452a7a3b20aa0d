// Carries the metadata of an anonymous session into a login. The application exchanges the session token, which
// itself is in no URL, for a ticket and sends that to /authorize. Only actions read the metadata. It is not
// verified, and nothing else depends on it.
import type { ParsedUrlQuery } from 'node:querystring';
import type { Challenges } from '../../capabilities/protection/challenges.ts';
import type { Client, ClientGrant, ResourceServer } from '../../records/collections.ts';
import type { Config } from '../../tenant/config.ts';
import { EXTENSIONS_PARAMETER, readExtensions, type Visitor } from '../base/request-extensions.ts';

/** The `audience` that asks for a ticket, in place of an API's. */
export const ANONYMOUS_TRANSFER = 'urn:auth0:anon_transfer';

/** Lifetime of a ticket, seconds. */
export const TRANSFER_SECONDS = 30;

/** The parameter of an authorization request. */
const PARAMETER = 'anon_transfer_token';

const PURPOSE = 'anonymous_transfer';

// docs/understand/decisions/tokens.md#the-ticket-for-a-visitors-login-is-stored-for-its-half-minute
/**
 * Issues a ticket for one authorization request of the application. The next one for the same session replaces it.
 */
export async function issueTransfer(
  { challenges }: { challenges: Pick<Challenges, 'issueTicket'> },
  clientId: string,
  visitor: Visitor,
): Promise<string> {
  const { secret } = await challenges.issueTicket({
    purpose: PURPOSE,
    subject: `${clientId}\n${visitor.subject}`,
    ttlSeconds: TRANSFER_SECONDS,
    data: { clientId, visitor },
  });
  return secret;
}

/**
 * Spends the ticket of an authorization request and adds its anonymous session to the request. A ticket that is not
 * valid, or of another application, is ignored: it is no reason to refuse the login.
 * @param request the normalized request.
 * @param received its parameters as received.
 */
export async function withVisitor(
  { challenges }: { challenges: Pick<Challenges, 'spendTicket'> },
  request: ParsedUrlQuery,
  { [PARAMETER]: ticket }: ParsedUrlQuery,
): Promise<ParsedUrlQuery> {
  const challenge = typeof ticket === 'string' ? await challenges.spendTicket(PURPOSE, ticket) : undefined;
  if (challenge === undefined || challenge.data.clientId !== request.client_id) return request;
  const extensions = { ...readExtensions(request), visitor: challenge.data.visitor };
  return { ...request, [EXTENSIONS_PARAMETER]: JSON.stringify(extensions) };
}

/** Returns `event.anonymous_session` of a normalized request, or nothing when it has none. */
export function anonymousSessionPart(
  params: Readonly<Record<string, unknown>> | undefined,
): Record<string, unknown> {
  const { visitor } = readExtensions(params ?? {});
  if (visitor === undefined) return {};
  return { anonymous_session: { user_id: visitor.subject, metadata: visitor.metadata ?? {} } };
}

/**
 * Returns the client grant by which anonymous sessions of an application may access an API.
 * @returns undefined unless the application, the API and the grant allow it now.
 */
export async function anonymousGrant(
  config: Pick<Config, 'clientGrant'>,
  client: Client | undefined,
  api: ResourceServer,
): Promise<ClientGrant | undefined> {
  const isOpen =
    client?.anonymous_sessions?.active === true &&
    api.allow_anonymous_access === true &&
    api.is_system !== true &&
    api.subject_type_authorization?.anonymous_user?.policy === 'require_client_grant';
  const grant = isOpen ? await config.clientGrant(client.client_id, api.identifier) : undefined;
  return grant?.subject_type === 'anonymous_user' ? grant : undefined;
}
