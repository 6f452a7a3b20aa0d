// A double of Twilio's Messages API and account: it checks requests and answers as told.
import http from 'node:http';
import type { AddressInfo } from 'node:net';

/** The account's state, the status that refuses it, or an answer that is not an account. */
type Account = string | number | { text: string };

export interface TestTwilio {
  url: string;
  /** The parameters of the messages accepted so far. */
  messages: Record<string, string>[];
  /** What happens to further messages; with `times` for that many, after which they are accepted. */
  behave(
    how: 'accept' | 'silence' | { status: number; code?: number; message?: string; times?: number },
  ): void;
  /** Sets the state of the account. */
  setAccount(as: Account): void;
  /** How many requests arrived. */
  asked(): number;
  stop(): Promise<void>;
}

export const TWILIO = {
  accountSid: 'AC0123456789abcdef0123456789abcdef',
  authToken: 'fedcba9876543210fedcba9876543210',
};

/** Starts the double on a free port. */
export async function startTwilio(): Promise<TestTwilio> {
  const messages: Record<string, string>[] = [];
  let behaviour: Parameters<TestTwilio['behave']>[0] = 'accept';
  let refusals = 0;
  let account: Account = 'active';
  let asked = 0;
  const expected = `Basic ${Buffer.from(`${TWILIO.accountSid}:${TWILIO.authToken}`).toString('base64')}`;
  const server = http.createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const answer = (status: number, body: object) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    asked++;
    if (request.headers.authorization !== expected)
      return answer(401, { code: 20003, message: 'Authenticate', status: 401 });
    if (request.method === 'GET' && request.url === `/2010-04-01/Accounts/${TWILIO.accountSid}.json`) {
      if (behaviour === 'silence') return undefined;
      if (typeof account === 'object') return response.end(account.text);
      if (typeof account === 'string')
        return answer(200, { sid: TWILIO.accountSid, auth_token: TWILIO.authToken, status: account });
      return answer(account, { code: 20003, message: `not with ${TWILIO.authToken}`, status: account });
    }
    if (
      request.method !== 'POST' ||
      request.url !== `/2010-04-01/Accounts/${TWILIO.accountSid}/Messages.json`
    ) {
      return answer(404, { code: 20404, message: `no ${request.method} ${request.url}`, status: 404 });
    }
    if (behaviour === 'silence') return undefined;
    if (behaviour !== 'accept' && refusals++ < (behaviour.times ?? Number.POSITIVE_INFINITY)) {
      const { status, code = 0, message = 'refused by the test' } = behaviour;
      return answer(status, { code, message, status });
    }
    const fields = Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString('utf8')));
    if (!fields.To || !fields.Body || (!fields.From && !fields.MessagingServiceSid)) {
      return answer(400, { code: 21604, message: 'a parameter is missing', status: 400 });
    }
    messages.push(fields);
    return answer(201, { sid: 'SM0', status: 'queued' });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    messages,
    behave: (how) => {
      behaviour = how;
      refusals = 0;
    },
    setAccount: (as) => {
      account = as;
    },
    asked: () => asked,
    stop: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}
