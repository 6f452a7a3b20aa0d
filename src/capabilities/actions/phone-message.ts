// Actions of `send-phone-message` and `custom-phone-provider`: they send codes to phones in place of the SMS provider.
// A message whose action fails is not delivered, as if a provider had rejected it.
// docs/understand/decisions/passwordless-messages.md#send-phone-message-sends-codes-of-passwordless-logins-only-if-there-is-no-sms-provider

import type { Transport } from '../../records/base/message-transport.ts';
import type { OutgoingSms } from '../delivery/transport.ts';
import { type ActionDeliveryDependencies, deliverByActions } from './deliver-by-actions.ts';
import { clientOf, connectionOf, organizationOf, userOf } from './facts.ts';

// docs/understand/decisions/passwordless-messages.md#the-action-that-sends-text-messages-is-used-if-it-is-bound
/** The first trigger that has an action delivers the message; the first one is the older. */
const TRIGGERS = ['send-phone-message', 'custom-phone-provider'] as const;

/**
 * Returns the transport of a tenant's text messages.
 * @param provider delivers them where no action is bound.
 * @param hasProvider whether the tenant has an SMS provider for a message. That one then still sends the codes of
 * passwordless logins, as in the hosted service.
 */
export function phoneActions(
  deps: ActionDeliveryDependencies,
  provider: Transport<OutgoingSms>,
  hasProvider: (message: OutgoingSms) => boolean,
): Transport<OutgoingSms> {
  return {
    ...provider,
    deliver: async (message, id) => {
      const { kind, notice } = message.source;
      const usesActions = kind === 'mfa_sms' || !hasProvider(message);
      const trigger = usesActions ? TRIGGERS.find((one) => deps.actions.isBound(one)) : undefined;
      if (trigger === undefined) return provider.deliver(message, id);
      const { application, user, ip } = notice;
      const about = { client_id: application?.client_id, user_id: user?.id, user_name: message.to, ip };
      const said =
        trigger === 'send-phone-message'
          ? { message_options: optionsOf(message) }
          : { ...loginFactsOf(message), notification: notificationOf(message) };
      const event = { ...factsOf(message), ...said };
      const hidden = message.code === undefined ? [] : [message.code];
      await deliverByActions(deps, trigger, { event, about, hidden });
    },
  };
}

function factsOf({ source: { notice } }: OutgoingSms): Record<string, unknown> {
  const { application, user, ip, userAgent, languages = [] } = notice;
  return {
    ...(application && { client: clientOf(application, application.client_id) }),
    ...(user && { user: userOf(user) }),
    // Codes are requested by forms and API calls, which are POST requests.
    request: { ip, method: 'POST', user_agent: userAgent, language: languages[0], geoip: {} },
  };
}

function loginFactsOf({ source: { notice } }: OutgoingSms): Record<string, unknown> {
  const { connection, organization, user } = notice;
  return {
    ...(connection && { connection: connectionOf(connection) }),
    ...(organization && { organization: organizationOf(organization) }),
    ...(user === undefined && { user: {} }),
  };
}

/** Returns `event.message_options`. */
function optionsOf({ to, text, code, source: { kind, notice } }: OutgoingSms): Record<string, unknown> {
  const second = notice.isEnrollment === true ? 'enrollment' : 'second-factor-authentication';
  const action = kind === 'mfa_sms' ? second : 'passwordless';
  return { action, code, message_type: 'sms', recipient: to, text };
}

/** Returns `event.notification`. */
function notificationOf({ to, from, text, code, source }: OutgoingSms): Record<string, unknown> {
  const message_type = source.notice.isEnrollment === true ? 'otp_enroll' : 'otp_verify';
  const said = { as_text: text, as_voice: text, code, locale: source.locale, from };
  return { ...said, recipient: to, delivery_method: 'text', message_type };
}
