// SMS through an account at Twilio.
import { z } from 'zod';
import { open, secret } from '../base/members.ts';
import { smsProvider } from './sms-provider.ts';

export const twilio = smsProvider({
  name: 'twilio',
  options: {
    twilio_sid: open(z.string().max(255).optional()),
    twilio_token: secret(z.string().max(255).optional()),
    messaging_service_sid: open(z.string().max(255).optional()),
  },
  open: ({ twilio_sid: accountSid, twilio_token: authToken, messaging_service_sid: service }, from) => {
    if (!accountSid || !authToken || (!from && !service)) return undefined;
    const account = {
      accountSid,
      authToken,
      ...(from && { from }),
      ...(service && { messagingServiceSid: service }),
    };
    return { address: undefined, forwardsRequest: false, transport: (needs) => needs.twilio(account) };
  },
});
