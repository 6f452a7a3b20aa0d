// Actions of `send-phone-message`: they bring codes to phones in place of the SMS provider. A message that one fails with is
// not delivered, as if a provider had refused it.

import { DeliveryError } from '../delivery/messages.ts';
import type { OutgoingSms, Transport } from '../delivery/transport.ts';
import { AuthError } from '../http/errors.ts';
import type { Actions } from './actions.ts';
import { clientOf, userOf } from './facts.ts';

const TRIGGER = 'send-phone-message';

/**
 * The transport of a tenant's text messages.
 * @param provider what takes them where no action is bound.
 * @param isReal whether a message has an SMS provider: that then goes on to bring the codes of passwordless logins, as the
 *   hosted service's does.
 */
export function phoneActions(
  actions: Pick<Actions, 'isBound' | 'run'>,
  provider: Transport<OutgoingSms>,
  isReal: (message: OutgoingSms) => boolean,
): Transport<OutgoingSms> {
  return {
    ...provider,
    deliver: async (message, id) => {
      const { kind, notice } = message.about;
      const isOurs = kind === 'mfa_sms' || !isReal(message);
      if (!isOurs || !actions.isBound(TRIGGER)) return provider.deliver(message, id);
      const { application, user, ip, languages = [] } = notice;
      const about = { client_id: application?.client_id, user_id: user?.id, user_name: message.to, ip };
      const event = {
        ...(application && { client: clientOf(application, application.client_id) }),
        ...(user && { user: userOf(user) }),
        request: { ip, language: languages[0], geoip: {} },
        message_options: optionsOf(message),
      };
      const hidden = message.code === undefined ? [] : [message.code];
      await actions.run(TRIGGER, event, about, { hidden }).catch((thrown: unknown) => {
        if (!(thrown instanceof AuthError)) throw thrown;
        // It may have been sent all the same, so it is not tried again.
        throw new DeliveryError('rejected', 'the action that sends messages has failed', { cause: thrown });
      });
    },
  };
}

/** `event.message_options`. */
function optionsOf({ to, text, code, about: { kind, notice } }: OutgoingSms): Record<string, unknown> {
  const second = notice.isEnrollment === true ? 'enrollment' : 'second-factor-authentication';
  const action = kind === 'mfa_sms' ? second : 'passwordless';
  return { action, code, message_type: 'sms', recipient: to, text };
}
