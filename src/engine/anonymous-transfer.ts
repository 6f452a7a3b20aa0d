// What an application noted of a visitor goes along with their login: by a ticket that it asks for with the visitor's
// session token, which itself is in no address. Actions read it; it is proved by nobody, and nothing here goes by it.
import type { ParsedUrlQuery } from 'node:querystring';
import type { Challenges } from '../protection/challenges.ts';
import { EXTENSIONS_PARAMETER, readExtensions, type Visitor } from './request-extensions.ts';

/** The audience by which a ticket is asked for, in place of an API's. */
export const ANONYMOUS_TRANSFER = 'urn:auth0:anon_transfer';

/** How long a ticket is good: from being asked for to the request, seconds. */
export const TRANSFER_SECONDS = 30;

/** The parameter of an authorization request. */
const PARAMETER = 'anon_transfer_token';

const PURPOSE = 'anonymous_transfer';

/** A ticket for one request of the application; the next one for the same visitor takes its place. */
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
 * The request with the visitor whose ticket it brings, which is thereby used up; without one where the ticket is not good,
 * or another application's: such a ticket is no reason to refuse the login.
 * @param request normalized. @param received its parameters as they came.
 */
export async function withVisitor(
  { challenges }: { challenges: Pick<Challenges, 'spendTicket'> },
  request: ParsedUrlQuery,
  { [PARAMETER]: ticket }: ParsedUrlQuery,
): Promise<ParsedUrlQuery> {
  const met = typeof ticket === 'string' ? await challenges.spendTicket(PURPOSE, ticket) : undefined;
  if (met === undefined || met.data.clientId !== request.client_id) return request;
  const extensions = { ...readExtensions(request), visitor: met.data.visitor };
  return { ...request, [EXTENSIONS_PARAMETER]: JSON.stringify(extensions) };
}

/** `event.anonymous_session` of a normalized request; nothing where it brings no visitor. */
export function anonymousSessionPart(
  params: Readonly<Record<string, unknown>> | undefined,
): Record<string, unknown> {
  const { visitor } = readExtensions(params ?? {});
  if (visitor === undefined) return {};
  return { anonymous_session: { user_id: visitor.subject, metadata: visitor.metadata ?? {} } };
}
