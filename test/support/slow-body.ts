// Requests whose body takes long to arrive.
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import https from 'node:https';
import { text } from 'node:stream/consumers';

/** A request with a body. */
interface SlowRequest {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string;
}

/**
 * Sends a request whose body ends only after something else has happened.
 * @param meanwhile runs when the headers and the first half of the body have been sent. It has to send a request to the
 *   same server and wait for the answer: when that one is answered, the server has long seen the headers of this one.
 */
export async function sendSlowly(
  { url, ca }: { url: string; ca: string },
  { method, path, headers, body }: SlowRequest,
  meanwhile: () => Promise<unknown>,
): Promise<{ status: number | undefined; text: string }> {
  const bytes = Buffer.from(body);
  const half = Math.floor(bytes.length / 2);
  const sent = https.request(url + path, {
    method,
    headers: { ...headers, 'content-length': String(bytes.length) },
    ca,
    servername: 'localhost',
  });
  const answered = once(sent, 'response');
  answered.catch(() => undefined);
  const [socket] = await once(sent, 'socket');
  if (socket.secureConnecting === true) await once(socket, 'secureConnect');
  await new Promise<void>((resolve) => sent.write(bytes.subarray(0, half), () => resolve()));
  await meanwhile();
  sent.end(bytes.subarray(half));
  const [response] = (await answered) as [IncomingMessage];
  return { status: response.statusCode, text: await text(response) };
}
