// SMS with Twilio's client.
import { setTimeout } from 'node:timers/promises';
import { DeliveryError } from './messages.ts';
import { once } from './once.ts';
import type { OutgoingSms, Transport } from './transport.ts';

/** Twilio account and sender: a number, a name, or a messaging service. */
export interface SmsSettings {
  accountSid: string;
  authToken: string;
  from?: string;
  messagingServiceSid?: string;
  /** Replaces Twilio's address in tests. */
  apiUrl?: string;
}

/** Twilio's error codes for numbers that are invalid, unreachable, or have opted out. */
const INVALID_NUMBER = new Set([21211, 21217, 21401, 21421, 21612, 21614, 21610]);
const TIMEOUT = 15_000;
/** A message may take so many timeouts in all: the client's own restarts with every byte of a trickling answer. */
const STEPS = 2;

/** A transport to Twilio. @param timeout milliseconds that a request may take. */
export function createSmsTransport(settings: SmsSettings, timeout: number = TIMEOUT): Transport<OutgoingSms> {
  const { accountSid, authToken, from, messagingServiceSid } = settings;
  // Loaded with the first SMS: the client is large.
  const client = once(() => createClient(accountSid, authToken, settings.apiUrl, timeout));
  return {
    deliver: async (message) => {
      const sender = message.from ?? from;
      const { messages } = await client();
      const sending = messages.create({
        to: message.to,
        body: message.text,
        ...(sender === undefined ? { messagingServiceSid: messagingServiceSid ?? '' } : { from: sender }),
      });
      const over = new AbortController();
      try {
        await Promise.race([sending, tooSlow(timeout * STEPS, over.signal)]);
      } catch (thrown) {
        throw smsError(thrown);
      } finally {
        over.abort();
      }
    },
    close: async () => {},
  };
}

/** Fails after `ms` milliseconds. */
async function tooSlow(ms: number, signal: AbortSignal): Promise<never> {
  await setTimeout(ms, undefined, { ref: false, signal });
  throw new Error('the answer took too long');
}

async function createClient(
  accountSid: string,
  authToken: string,
  apiUrl: string | undefined,
  timeout: number,
) {
  const { default: twilio } = await import('twilio');
  const { RequestClient } = twilio;
  const httpClient = new RequestClient({ timeout });
  if (apiUrl === undefined) return twilio(accountSid, authToken, { httpClient });
  const request = httpClient.request.bind(httpClient);
  const { origin } = new URL(apiUrl);
  // The client only takes hosts of Twilio's.
  httpClient.request = (options) =>
    request({ ...options, uri: origin + new URL(options.uri).pathname + new URL(options.uri).search });
  return twilio(accountSid, authToken, { httpClient });
}

/** A failure as Twilio's client reports it. */
interface SmsFailure {
  status?: number;
  code?: number | string;
  message?: string;
}

function smsError(thrown: unknown): DeliveryError {
  const { status, code, message } = thrown as SmsFailure;
  const number = typeof code === 'number' ? code : undefined;
  const options = { ...(number === undefined ? {} : { providerCode: String(number) }), cause: thrown };
  if (number !== undefined && INVALID_NUMBER.has(number)) {
    return new DeliveryError('invalid-number', message ?? 'The phone number is not valid.', options);
  }
  const isFinal = status !== undefined && status >= 400 && status < 500 && status !== 429 && status !== 408;
  return isFinal
    ? new DeliveryError('rejected', 'the SMS provider refuses the message', options)
    : new DeliveryError('unavailable', 'the SMS provider cannot be reached', options);
}
