// Actions of `custom-email-provider`: they bring the e-mails of a tenant whose provider is called `custom`.
import type { EmailKind } from '../delivery/messages.ts';
import type { OutgoingEmail, Transport } from '../delivery/transport.ts';
import { type BringingDependencies, bringMessage } from './bring-message.ts';
import { clientOf, connectionOf, organizationOf, userOf } from './facts.ts';

const TRIGGER = 'custom-email-provider';

/** What messages are called that are published under another name; ours have no published one. */
const TYPES: Partial<Record<EmailKind, string>> = {
  user_invitation: 'organization_invitation',
  passwordless_email: 'verification_code',
};

/** The one that an administrator sends to see whether mail arrives. */
const TRIED = 'try_provider_configuration_email';

/**
 * The transport of a tenant's e-mails.
 * @param provider what takes them where no action is bound.
 * @param isCustom whether the tenant's provider is `custom`.
 */
export function emailActions(
  deps: BringingDependencies,
  provider: Transport<OutgoingEmail>,
  isCustom: () => boolean,
): Transport<OutgoingEmail> {
  return {
    ...provider,
    deliver: async (message, id) => {
      if (!isCustom() || !deps.actions.isBound(TRIGGER)) return provider.deliver(message, id);
      const { kind, notice, locale } = message.about ?? {};
      const { application, connection, organization, user, ip, userAgent } = notice ?? {};
      const { from, to, subject, html, text } = message;
      const message_type = kind === undefined ? TRIED : (TYPES[kind] ?? kind);
      const event = {
        ...(application && { client: clientOf(application, application.client_id) }),
        ...(connection && { connection: connectionOf(connection) }),
        ...(organization && { organization: organizationOf(organization) }),
        // The published example sends to this address, also where nobody has it yet.
        user: user === undefined ? { email: to } : userOf(user),
        request: { ip, user_agent: userAgent, geoip: {} },
        notification: { from, to, subject, html, text, locale, message_type },
      };
      const about = { client_id: application?.client_id, user_id: user?.id, user_name: to, ip };
      await bringMessage(deps, TRIGGER, { event, about, hidden: provingIn(message) });
    },
  };
}

/** What whoever reads it could log in or change something by: the code, the link, and what is in the link. */
function provingIn({ code, link }: OutgoingEmail): string[] {
  const params = link === undefined ? [] : [...new URL(link).searchParams.values()];
  return [code, link, ...params.filter((value) => value.length >= SHORTEST)].filter(
    (one) => one !== undefined,
  );
}

/** What proves something is longer; shorter ones are words. */
const SHORTEST = 16;
