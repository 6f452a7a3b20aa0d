// Actions of `custom-email-provider`: they deliver the e-mails of a tenant whose provider is named `custom`.

import type { Transport } from '../../records/base/message-transport.ts';
import type { EmailKind } from '../delivery/delivery-messages.ts';
import type { OutgoingEmail } from '../delivery/transport.ts';
import { type ActionDeliveryDependencies, deliverByActions } from './deliver-by-actions.ts';
import { clientOf, connectionOf, organizationOf, userOf } from './facts.ts';

const TRIGGER = 'custom-email-provider';

/** Published names of messages that have another name here. Messages without a published name keep ours. */
const MESSAGE_TYPES: Partial<Record<EmailKind, string>> = {
  user_invitation: 'organization_invitation',
  passwordless_email: 'verification_code',
};

const TEST_MESSAGE_TYPE = 'try_provider_configuration_email';

/**
 * @param provider delivers them where no action is bound.
 * @param isCustom whether the tenant's provider is `custom`.
 */
export function emailActions(
  deps: ActionDeliveryDependencies,
  provider: Transport<OutgoingEmail>,
  isCustom: () => boolean,
): Transport<OutgoingEmail> {
  return {
    ...provider,
    deliver: async (message, id) => {
      if (!isCustom() || !deps.actions.isBound(TRIGGER)) return provider.deliver(message, id);
      const { kind, notice, locale } = message.source ?? {};
      const { application, connection, organization, user, ip, userAgent } = notice ?? {};
      const { from, to, subject, html, text } = message;
      const message_type = kind === undefined ? TEST_MESSAGE_TYPE : (MESSAGE_TYPES[kind] ?? kind);
      const event = {
        ...(application && { client: clientOf(application, application.client_id) }),
        ...(connection && { connection: connectionOf(connection) }),
        ...(organization && { organization: organizationOf(organization) }),
        // The published example sends to `user.email`, so it is set even where no user has that address yet.
        user: user === undefined ? { email: to } : userOf(user),
        request: { ip, user_agent: userAgent, geoip: {} },
        notification: { from, to, subject, html, text, locale, message_type },
      };
      const about = { client_id: application?.client_id, user_id: user?.id, user_name: to, ip };
      await deliverByActions(deps, TRIGGER, { event, about, hidden: secretsOf(message) });
    },
  };
}

/** Returns the secrets of a message: the code, the link, and the parameters of the link. */
function secretsOf({ code, link }: OutgoingEmail): string[] {
  const params = link === undefined ? [] : [...new URL(link).searchParams.values()];
  return [code, link, ...params.filter((value) => value.length >= MIN_SECRET_LENGTH)].filter(
    (one) => one !== undefined,
  );
}

/** Shorter parameters are words, not secrets. */
const MIN_SECRET_LENGTH = 16;
