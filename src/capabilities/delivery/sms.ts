// SMS with Twilio's client.
import type HttpClient from 'twilio/lib/base/RequestClient.js';
import type { MessageListInstance } from 'twilio/lib/rest/api/v2010/account/message.js';
import type { Outbound } from '../../http/outbound/outbound.ts';
import { DeliveryError, type TextMessage, type Transport } from '../../records/base/message-transport.ts';
import type { TwilioAccount } from '../../records/sms-providers/sms-provider.ts';
import { once } from './once.ts';

/** Twilio's error codes for numbers that are invalid, unreachable, or have opted out. */
const INVALID_NUMBER = new Set([21211, 21217, 21401, 21421, 21612, 21614, 21610]);
const TIMEOUT = 15_000;

/** @param timeout longest duration of a request, milliseconds. */
export function createSmsTransport(
  settings: TwilioAccount,
  outbound: Pick<Outbound, 'fetch'>,
  timeout: number = TIMEOUT,
): Transport<TextMessage> {
  const { from, messagingServiceSid } = settings;
  // Imported with the first SMS: the client is large.
  const library = once(load);
  return {
    deliver: async (message, id) => {
      const sender = message.from ?? from;
      const { messages } = createClient(await library(), settings, { outbound, timeout, id });
      await messages
        .create({
          to: message.to,
          body: message.text,
          ...(sender === undefined ? { messagingServiceSid: messagingServiceSid ?? '' } : { from: sender }),
        })
        .catch((thrown: unknown) => {
          throw smsError(thrown);
        });
    },
    close: async () => {},
  };
}

/**
 * Asks Twilio for the state of the account, with the client that sends messages.
 * @param timeout milliseconds.
 * @returns the state of the account (`active`, `suspended`, `closed`), or the HTTP status with which Twilio refuses.
 * @throws Error when Twilio cannot be reached, or the answer is not Twilio's; it never quotes the answer.
 */
export async function checkSmsAccount(
  settings: TwilioAccount,
  outbound: Pick<Outbound, 'fetch'>,
  timeout: number,
): Promise<{ state: string } | { refused: number }> {
  const { account } = createClient(await load(), settings, { outbound, timeout });
  try {
    const { status } = await account();
    return { state: String(status) };
  } catch (thrown) {
    const { status } = thrown as SmsFailure;
    if (status !== undefined) return { refused: status };
    // The error quotes the text that could not be parsed, and an account's text contains its token.
    if (thrown instanceof SyntaxError) throw new Error('the answer is not JSON');
    throw thrown;
  }
}

/** Loads only those parts of the client that send messages. The package is 8 MB of code for all APIs of Twilio. */
async function load() {
  const [base, domain, version, message] = await Promise.all([
    import('twilio/lib/base/BaseTwilio.js'),
    import('twilio/lib/base/Domain.js'),
    import('twilio/lib/base/Version.js'),
    import('twilio/lib/rest/api/v2010/account/message.js'),
  ]);
  return {
    Client: base.default.Client,
    Domain: domain.default.default,
    Version: version.default.default,
    MessageListInstance: message.default.MessageListInstance,
  };
}

/** @param id id of the message that it sends. */
function createClient(
  twilio: Awaited<ReturnType<typeof load>>,
  settings: TwilioAccount,
  { outbound, timeout, id }: { outbound: Pick<Outbound, 'fetch'>; timeout: number; id?: string },
) {
  const request: HttpClient['request'] = async (request) => {
    const { pathname, search, origin } = new URL(request.uri);
    // The client only accepts hosts of Twilio's.
    const target =
      (settings.apiUrl === undefined ? origin : new URL(settings.apiUrl).origin) + pathname + search;
    const { username = '', password = '' } = request;
    const answer = await outbound.fetch(target, {
      method: request.method,
      headers: {
        ...(request.headers as Record<string, string>),
        // For gateways that evaluate it; Twilio does not (draft-ietf-httpapi-idempotency-key-header).
        ...(id !== undefined && { 'Idempotency-Key': `"${id}"` }),
        authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
      },
      // A GET has no body.
      ...(request.data !== undefined && {
        body: new URLSearchParams(request.data as Record<string, string>),
      }),
      redirect: 'manual',
      timeout,
    });
    // The client reads only these members of an answer.
    return { statusCode: answer.status, body: await answer.text() } as never;
  };
  const { accountSid, authToken } = settings;
  // The client calls no other method of this.
  const client = new twilio.Client(accountSid, authToken, { httpClient: { request } as HttpClient });
  const version = new twilio.Version(new twilio.Domain(client, 'https://api.twilio.com'), '2010-04-01');
  return {
    messages: twilio.MessageListInstance(version as Parameters<typeof MessageListInstance>[0], accountSid),
    account: () => version.fetch({ uri: `/Accounts/${encodeURIComponent(accountSid)}.json`, method: 'get' }),
  };
}

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
