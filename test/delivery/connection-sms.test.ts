// Codes by SMS through the provider that their connection names: a gateway of the operator, or Twilio.
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { inspect } from 'node:util';
import { expect } from 'chai';
import { jwtVerify } from 'jose';
import { createSmsTransport } from '../../src/capabilities/delivery/sms.ts';
import type { OutgoingSms } from '../../src/capabilities/delivery/transport.ts';
import { connectionSms } from '../../src/capabilities/delivery/transports.ts';
import {
  createOutbound,
  LOOPBACK_RANGES,
  type Outbound,
  outboundRules,
} from '../../src/http/outbound/outbound.ts';
import type { DeliveryError, Transport } from '../../src/records/base/message-transport.ts';
import type { TwilioAccount } from '../../src/records/sms-providers/sms-provider.ts';
import { productionFaults } from '../../src/tenant/examples.ts';
import { tenant } from '../connections/passwordless/tenant.ts';
import { callApi, startManaged } from '../management/support.ts';
import { createAgent } from '../support/agent.ts';
import type { TestServer } from '../support/server.ts';
import { startTwilio, TWILIO } from '../support/twilio.ts';

const SECRET = 'shared with the gateway';

interface Taken {
  authorization: string | undefined;
  body: Record<string, unknown>;
}

/** A gateway that accepts every message, or answers with a status. */
async function startGateway() {
  const taken: Taken[] = [];
  let status = 200;
  const server = http.createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    taken.push({
      authorization: request.headers.authorization,
      body: JSON.parse(Buffer.concat(chunks).toString()),
    });
    // The body and other headers are ignored.
    response.writeHead(status, { location: '/elsewhere' }).end(`{"error":"${SECRET}"}`);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/send`,
    taken,
    answer: (next: number) => {
      status = next;
    },
    stop: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

describe('an SMS connection with a provider of its own', () => {
  let gateway: Awaited<ReturnType<typeof startGateway>>;
  let server: TestServer;
  before(async () => {
    gateway = await startGateway();
    const connection = (name: string, options: object) => ({
      name,
      strategy: 'sms',
      enabled_clients: ['web'],
      options: { provider: 'sms_gateway', gateway_url: gateway.url, ...options },
    });
    server = await startManaged({
      ...tenant,
      connections: [
        connection('gateway', {
          from: '+15005550006',
          template: 'Your code: @@password@@',
          syntax: 'md_with_macros',
          // As tools write it.
          forward_req_info: 'true',
          totp: { length: 40, time_step: 60 },
          gateway_authentication: {
            method: 'bearer',
            subject: 'urn:Auth0',
            audience: 'urn:gateway',
            secret: Buffer.from(SECRET).toString('base64url'),
            secret_base64_encoded: true,
          },
        }),
        connection('plain', {}),
      ],
    });
  });
  after(async () => {
    await server?.stop();
    await gateway?.stop();
  });
  afterEach(() => gateway.answer(200));

  const start = (connection: string, phone_number: string) =>
    createAgent(server).request('/passwordless/start', {
      json: { client_id: 'web', client_secret: 'web-secret', connection, phone_number },
      headers: { 'user-agent': 'the app' },
    });
  const lastTo = (number: string) => gateway.taken.findLast(({ body }) => body.recipient === number);

  it('posts the message to its gateway, authenticated, with the request if the gateway asks for it', async () => {
    const answer = await start('gateway', '+16505550101');
    expect(answer.status, answer.text).to.equal(200);
    const { authorization = '', body = {} }: Partial<Taken> = lastTo('+16505550101') ?? {};
    expect(body).to.include({ sender: '+15005550006' });
    expect(body.body).to.match(/^Your code: \d{40}$/);
    expect(body.req).to.deep.equal({ ip: '127.0.0.1', user_agent: 'the app' });
    const { payload, protectedHeader } = await jwtVerify(
      authorization.replace('Bearer ', ''),
      Buffer.from(SECRET),
      { audience: 'urn:gateway', subject: 'urn:Auth0' },
    );
    expect(protectedHeader.alg).to.equal('HS256');
    expect((payload.exp ?? 0) - (payload.iat ?? 0)).to.equal(300);
  });

  it('sends a gateway nothing else that it did not ask for', async () => {
    expect((await start('plain', '+16505550102')).status).to.equal(200);
    const { authorization, body } = lastTo('+16505550102') ?? {};
    expect(authorization).to.equal(undefined);
    expect(Object.keys(body ?? {}).sort()).to.deep.equal(['body', 'recipient']);
  });

  for (const [status, number] of [
    [401, '+16505550103'],
    [400, '+16505550104'],
    [302, '+16505550105'],
  ] as const) {
    it(`takes ${status} of a gateway as a refusal, and repeats nothing from the answer`, async () => {
      gateway.answer(status);
      const answer = await start('gateway', number);
      expect(answer.status).to.equal(503);
      expect(answer.text).not.to.contain(SECRET);
      expect(gateway.taken.filter(({ body }) => body.recipient === number)).to.have.length(1);
    });
  }

  it('is rejected with a gateway that no message can be sent to', async () => {
    const create = async (options: object) => {
      const body = { name: 'new', strategy: 'sms', options: { provider: 'sms_gateway', ...options } };
      const answer = await callApi(server, 'POST', '/connections', body);
      return { status: answer.status, text: await answer.text() };
    };
    for (const user of ['user:hush-hush@', 'user@', ':hush-hush@']) {
      const { status, text } = await create({ gateway_url: `https://${user}gateway.example.test/` });
      expect(status, user).to.equal(400);
      expect(text).to.contain('without user and password').and.not.contain('hush-hush');
    }
    const gateway_authentication = {
      method: 'bearer',
      audience: 'a',
      secret: '=',
      secret_base64_encoded: true,
    };
    const { status, text } = await create({ gateway_url: gateway.url, gateway_authentication });
    expect(status).to.equal(400);
    expect(text).to.contain('gateway_authentication.secret').and.contain('holds nothing');
  });

  describe('delivers', () => {
    const outbox: Transport<OutgoingSms> & { taken: string[] } = {
      taken: [],
      deliver: async ({ text }) => {
        outbox.taken.push(text);
      },
      close: async () => {},
    };
    const message = (options: object, kind: 'passwordless_sms' | 'mfa_sms' = 'passwordless_sms') =>
      ({
        channel: 'sms',
        to: '+16505551234',
        text: 'Your code is 123456.',
        source: {
          kind,
          notice: { to: '+16505551234', connection: { id: 'c', name: 'sms', strategy: 'sms', options } },
        },
      }) as unknown as OutgoingSms;
    const twilioOptions = {
      twilio_sid: TWILIO.accountSid,
      twilio_token: TWILIO.authToken,
      messaging_service_sid: 'MG1',
    };

    const needs = (outbound: Outbound, apiUrl?: string) => ({
      outbound,
      clock: Date.now,
      twilio: (account: TwilioAccount) => createSmsTransport({ ...account, apiUrl }, outbound),
    });

    it('through its account at Twilio', async () => {
      const twilio = await startTwilio();
      try {
        const outbound = createOutbound({ rules: outboundRules(LOOPBACK_RANGES) });
        const sms = connectionSms(needs(outbound, twilio.url), outbox);
        await sms.deliver(message(twilioOptions), 'an-id');
        expect(twilio.messages).to.deep.equal([
          { To: '+16505551234', Body: 'Your code is 123456.', MessagingServiceSid: 'MG1' },
        ]);
        // A code of a second factor is no message of the connection, and an incomplete account is not used.
        await sms.deliver(message(twilioOptions, 'mfa_sms'), 'another');
        await sms.deliver(message({ ...twilioOptions, twilio_token: '' }), 'a-third');
        expect(twilio.messages).to.have.length(1);
        expect(outbox.taken).to.have.length(2);
      } finally {
        await twilio.stop();
      }
    });

    it('through no invalid gateway, nor another provider instead, and reveals no password of it', async () => {
      const outbound = createOutbound({ rules: outboundRules(LOOPBACK_RANGES) });
      const sms = connectionSms(needs(outbound), outbox);
      const [asked, taken] = [gateway.taken.length, outbox.taken.length];
      const url = gateway.url.replace('//', '//user:hush-hush@');
      const gateway_authentication = {
        method: 'bearer',
        audience: 'a',
        secret: '=',
        secret_base64_encoded: true,
      };
      for (const [options, code] of [
        [{ gateway_url: url }, 'unavailable'],
        [{ gateway_url: url.replace(/:\d+\/send/, ':99999/') }, 'unavailable'],
        [{ gateway_url: gateway.url, gateway_authentication }, 'rejected'],
      ] as const) {
        const error = await sms
          .deliver(message({ provider: 'sms_gateway', ...options }), 'an-id')
          .catch((thrown: DeliveryError) => thrown);
        expect(error).to.include({ name: 'DeliveryError', code });
        expect(inspect(error, { depth: 9, showHidden: true })).not.to.contain('hush-hush');
      }
      expect(gateway.taken).to.have.length(asked);
      expect(outbox.taken).to.have.length(taken);
    });

    it('to no address that the operator does not allow', async () => {
      const outbound = createOutbound({ rules: outboundRules([]) });
      const sms = connectionSms(needs(outbound), outbox);
      const sentBefore = gateway.taken.length;
      const error = await sms
        .deliver(message({ provider: 'sms_gateway', gateway_url: gateway.url }), 'an-id')
        .catch((thrown: DeliveryError) => thrown);
      expect(error).to.include({ code: 'unavailable' });
      expect(gateway.taken).to.have.length(sentBefore);
    });
  });

  it('is enough for production, and a connection without one is not', () => {
    const file = (options: object) =>
      ({
        clients: [],
        users: [],
        connections: [{ name: 'texts', strategy: 'sms', enabled_clients: ['web'], options }],
      }) as unknown as Parameters<typeof productionFaults>[0];
    const faults = (options: object) =>
      productionFaults(file(options), { mail: {} }).filter((one) => one.includes('texts'));
    expect(faults({ provider: 'sms_gateway', gateway_url: 'https://gateway.example' })).to.deep.equal([]);
    expect(faults({ provider: 'sms_gateway' })).to.have.length(1);
    expect(faults({})).to.have.length(1);
  });
});
