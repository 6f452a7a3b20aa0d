// The URL to which the browser goes after the link of a mail or a ticket was used.

import type { Messages } from '../../../../capabilities/delivery/delivery-messages.ts';
import { withParameters } from '../../../../http/server/body.ts';
import type { Organization } from '../../../../records/collections.ts';

/**
 * Returns the URL to redirect to after a link was used, with the result in its query.
 * @param target the ticket's or an action's URL, which takes precedence over the e-mail template's.
 * @returns undefined if none is configured.
 */
export function resultUrl(
  { messages }: { messages: Pick<Messages, 'template'> },
  kind: 'reset_email' | 'verify_email',
  outcome: {
    success: boolean;
    message: string;
    email: string | undefined;
    organization?: Organization | undefined;
  },
  target?: { url: string; includeEmail: boolean },
): string | undefined {
  const template = messages.template(kind);
  const configured = target?.url ?? template.resultUrl;
  const includeEmailInRedirect = target?.includeEmail ?? template.includeEmailInRedirect;
  const url = configured === undefined ? null : URL.parse(configured);
  if (url === null) return undefined;
  const { success, message, email, organization } = outcome;
  return withParameters(url.href, {
    ...(email !== undefined && includeEmailInRedirect && { email }),
    success: String(success),
    message,
    ...(organization && { organization_id: organization.id, organization_name: organization.name }),
  });
}
