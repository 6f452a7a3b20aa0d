// Limits text messages for each number, whatever asks for them: each message costs money and disturbs the owner of the
// number.
import { DeliveryError, type Transport } from '../../records/base/message-transport.ts';
import type { OutgoingSms } from './transport.ts';

interface SmsLimit {
  /** Counts a message to a number in E.164. @returns whether it is within the limit. */
  take(number: string): Promise<boolean>;
  /** Uncounts a message that was not sent. */
  giveBack(number: string): Promise<void>;
}

export function limitedSms(transport: Transport<OutgoingSms>, limit: SmsLimit): Transport<OutgoingSms> {
  return {
    ...transport,
    deliver: async (message, id) => {
      if (!(await limit.take(message.to)))
        throw new DeliveryError('rejected', 'there were too many messages to this number');
      try {
        await transport.deliver(message, id);
      } catch (thrown) {
        await limit.giveBack(message.to);
        throw thrown;
      }
    },
  };
}
