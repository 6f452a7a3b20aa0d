// SIGNING=http: signs with a service that holds the keys (docs/do/keys.md "A service"), through the client with the
// rules for outbound requests.
import { z } from 'zod';
import { isCallable, type Outbound } from '../../../http/outbound/outbound.ts';
import { withoutEnd } from '../../../runtime/without-end.ts';
import { type KeyPlace, keySetOf, signingPlace } from '../place.ts';

export const http = signingPlace({
  name: 'http',
  variables: {
    SIGNING_URL: z
      .string()
      .refine(
        isCallable,
        'must be an https address without user and password, or an http one that OUTBOUND_ALLOW opens',
      )
      .meta({ description: 'with `SIGNING=http`: the address of the signing service' }),
    SIGNING_SECRET: z.string().min(22).meta({
      isSecret: true,
      description: 'with `SIGNING=http`: the bearer token for the service, at least 22 characters',
    }),
  },
  address: 'SIGNING_URL',
  open: ({ SIGNING_URL: url, SIGNING_SECRET: secret }, { outbound }) =>
    signingService({ url, secret }, outbound),
});

interface Service {
  url: string;
  secret: string;
}

/** Bytes. Key sets and signatures are short. */
const MAX_RESPONSE_BYTES = 256 * 1024;

/**
 * @returns functions that throw an Error when the service answers with a status other than 2xx, or with another
 *   content.
 */
function signingService({ url, secret }: Service, { fetch }: Pick<Outbound, 'fetch'>): KeyPlace {
  const base = withoutEnd(url, '/');
  const request = async (path: string, init: RequestInit): Promise<string> => {
    const response = await fetch(`${base}${path}`, {
      ...init,
      headers: { ...init.headers, authorization: `Bearer ${secret}`, accept: 'application/json' },
      redirect: 'error',
      maxBytes: MAX_RESPONSE_BYTES,
    });
    if (!response.ok) throw new Error(`the signing service answered ${response.status}`);
    return response.text();
  };
  return {
    keys: async (signal) => keySetOf(await request('/keys', { signal })),
    sign: async ({ alg, kid, data }, signal) => {
      const answer = await request('/sign', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ alg, kid, data: Buffer.from(data).toString('base64') }),
        signal,
      });
      return Buffer.from(signatureOf(answer), 'base64');
    },
  };
}

function signatureOf(answer: string): string {
  try {
    const { signature } = JSON.parse(answer) as { signature?: unknown };
    if (typeof signature === 'string') return signature;
  } catch {
    // Reported below.
  }
  throw new Error('the signing service gave no signature');
}
