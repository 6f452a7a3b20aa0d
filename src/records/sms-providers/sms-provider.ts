// A provider of the messages of `sms` connections: what its options are, and how messages get to it. Each is a file in
// this folder and a line of `SMS_PROVIDERS` (src/records/connections/passwordless.ts).
import { z } from 'zod';
import type { Outbound } from '../../http/outbound/outbound.ts';
import type { Clock } from '../../runtime/clock.ts';
import { type Member, type Members, shapeOf, type ValuesOf } from '../base/members.ts';
import type { TextMessage, Transport } from '../base/message-transport.ts';

/** An account at Twilio, and the sender: a number, a name, or a messaging service. */
export interface TwilioAccount {
  accountSid: string;
  authToken: string;
  from?: string | undefined;
  messagingServiceSid?: string | undefined;
  /** Replaces Twilio's address in tests. */
  apiUrl?: string | undefined;
}

/** What providers may use to send messages. */
export interface SmsNeeds {
  outbound: Pick<Outbound, 'fetch'>;
  /** The time of day. */
  clock: Clock;
  /** Makes a transport to Twilio. */
  twilio(account: TwilioAccount): Transport<TextMessage>;
}

/** The provider of a connection. */
export interface ConnectionSms {
  /** Its address, which the doctor asks; undefined if the options have none. */
  address: string | undefined;
  /** Whether it gets data of the request that asked for the message. */
  forwardsRequest: boolean;
  transport(needs: SmsNeeds): Transport<TextMessage>;
}

/** A fault of options, by the path of a member. */
interface OptionFault {
  path: string[];
  message: string;
}

/** None is hidden, because the Management API returns the options of connections. */
type OptionMembers = Readonly<Record<string, Member<z.ZodType, 'open' | 'secret'>>>;

interface SmsProviderDeclaration<M extends OptionMembers> {
  /** The `provider` of the options. */
  name: string;
  /** Members of the options. Secrets are kept if a change leaves them out. */
  options: M;
  /**
   * Returns what else is wrong with options that are written. Stored options are not asked: a provider that was stored
   * before the check is still the connection's, and no other replaces it.
   */
  faults?(options: ValuesOf<M>): OptionFault[];
  /** Returns undefined if the options lack what the provider needs. @param from the connection's sender. */
  open(options: ValuesOf<M>, from: string | undefined): ConnectionSms | undefined;
}

/** A {@link SmsProviderDeclaration} for every type of options: it reads them itself. */
export interface SmsProvider {
  name: string;
  members: Members;
  faults(options: unknown): OptionFault[];
  open(options: unknown, from: string | undefined): ConnectionSms | undefined;
}

export function smsProvider<M extends OptionMembers>({
  name,
  options: members,
  faults = () => [],
  open,
}: SmsProviderDeclaration<M>): SmsProvider {
  const schema = z.object(shapeOf(members));
  const read = (options: unknown) => schema.safeParse(options).data as ValuesOf<M> | undefined;
  return {
    name,
    members,
    faults: (options) => {
      const own = read(options);
      return own === undefined ? [] : faults(own);
    },
    open: (options, from) => {
      const own = read(options);
      return own && open(own, from);
    },
  };
}
