// One limit of text messages for each number, whatever asks for them: each costs money, and disturbs whose number it is.
import { DeliveryError } from './messages.ts';
import type { OutgoingSms, Transport } from './transport.ts';

/** Where messages to numbers are counted. */
interface SmsRoom {
  /** Takes room for a message to a number in E.164. @returns whether there was some. */
  take(number: string): Promise<boolean>;
  /** Gives back what a message took that was not sent. */
  giveBack(number: string): Promise<void>;
}

/** A transport that refuses, for good, what comes to a number beyond its limit. */
export function limitedSms(transport: Transport<OutgoingSms>, room: SmsRoom): Transport<OutgoingSms> {
  return {
    ...transport,
    deliver: async (message, id) => {
      if (!(await room.take(message.to)))
        throw new DeliveryError('rejected', 'there were too many messages to this number');
      try {
        await transport.deliver(message, id);
      } catch (thrown) {
        await room.giveBack(message.to);
        throw thrown;
      }
    },
  };
}
