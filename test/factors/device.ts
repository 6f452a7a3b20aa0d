// A device that approves logins, over HTTP.
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { expect } from 'chai';
import { exportJWK, SignJWT } from 'jose';
import type { callsOf } from './tenant.ts';

/** An enrolled device: its id and its key. */
export interface Device {
  id: string;
  key: KeyObject;
}

/** @param about returns the present server, its calls, and an unused address. */
export function devicesOf(
  about: () => { server: { url: string }; calls: ReturnType<typeof callsOf>; someone(): string },
) {
  const sign = (key: KeyObject, claims: Record<string, unknown>, over: { aud?: string; iat?: number } = {}) =>
    new SignJWT({ ...claims, iat: over.iat ?? Math.floor(Date.now() / 1000) })
      .setProtectedHeader({ alg: 'ES256' })
      .setAudience(over.aud ?? about().server.url)
      .sign(key);
  const newKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const begin = async (user: string, clientId = 'web') => {
    const mfa_token = await about().calls.mfaToken(user, {}, clientId);
    const answer = await about().calls.associate(mfa_token, {
      authenticator_types: ['oob'],
      oob_channels: ['auth0'],
    });
    expect(answer.status, answer.text).to.equal(200);
    const body = answer.json();
    const ticket = new URL(body.barcode_uri).searchParams.get('enrollment_tx_id') ?? '';
    return { mfa_token, body, ticket };
  };
  const register = async (ticket: string, over: Record<string, unknown> = {}, keys = newKey()) => {
    const proof = await sign(keys.privateKey, { enrollment_tx_id: ticket });
    const answer = await about().calls.agent.request('/authenticator/devices', {
      json: {
        enrollment_tx_id: ticket,
        public_key: await exportJWK(keys.publicKey),
        name: 'Phone',
        proof,
        ...over,
      },
    });
    return { answer, key: keys.privateKey };
  };
  /** Enrols a user with a device. */
  const enrolled = async (clientId = 'web'): Promise<{ user: string; device: Device }> => {
    const user = about().someone();
    const { mfa_token, body, ticket } = await begin(user, clientId);
    const { answer, key } = await register(ticket);
    expect(answer.status, answer.text).to.equal(200);
    const done = await about().calls.verify('oob', { mfa_token, oob_code: body.oob_code }, clientId);
    expect(done.status, done.text).to.equal(200);
    return { user, device: { id: answer.json().id, key } };
  };
  const challenged = async (user: string, clientId = 'web') => {
    const mfa_token = await about().calls.mfaToken(user, {}, clientId);
    const { oob_code, ...rest } = (
      await about().calls.challenge({ mfa_token, challenge_type: 'oob' }, clientId)
    ).json();
    expect(rest, 'no binding method: the device answers').to.deep.equal({ challenge_type: 'oob' });
    return { mfa_token, oob_code };
  };
  const requests = async ({ id, key }: Device, jwt?: string) =>
    about().calls.agent.get('/authenticator/requests', {
      authorization: `Device ${jwt ?? (await sign(key, { sub: id }))}`,
    });
  const answerWith = async ({ id, key }: Device, request: string, answer: string, jwt?: string) =>
    about().calls.agent.request(`/authenticator/requests/${request}`, {
      method: 'POST',
      headers: { authorization: `Device ${jwt ?? (await sign(key, { sub: id, request, answer }))}` },
    });
  const waiting = async (device: Device): Promise<{ id: string; application: string; number: string }[]> =>
    (await requests(device)).json() as never;

  return { sign, newKey, begin, register, enrolled, challenged, requests, answerWith, waiting };
}
