// Mail to a real SMTP server: what arrives, and how failures are reported.
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import net, { type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { createMailTransport } from '../../src/capabilities/delivery/mail.ts';
import type { OutgoingEmail } from '../../src/capabilities/delivery/transport.ts';
import { smtpSettings } from '../../src/capabilities/delivery/transports.ts';
import { localCertificate } from '../../src/capabilities/tls/authority.ts';
import { DeliveryError } from '../../src/records/base/message-transport.ts';
import type { MailServer } from '../../src/records/mail-providers/mail-provider.ts';
import { startMailServer, type TestMailServer } from '../support/smtp.ts';
import { PATIENCE } from '../support/wait-until.ts';

const MESSAGE: OutgoingEmail = {
  channel: 'email',
  to: 'ada@example.test',
  from: 'Gate "house" <login@example.test>',
  subject: 'Your code, ça va',
  text: 'Your code is 123456.',
  html: '<p>Your code is <b>123456</b>.</p>',
};
const OPTIONS = { host: 'login.example.test', timeout: PATIENCE };
const HASTY = { timeout: 500 };

describe('mail', () => {
  let server: TestMailServer;
  before(async () => {
    server = await startMailServer();
  });
  after(() => server.stop());
  afterEach(() => server.behave('accept'));

  const deliver = async (
    message: OutgoingEmail = MESSAGE,
    settings: Partial<MailServer> = {},
    options = {},
  ) => {
    const plain = { host: '127.0.0.1', port: server.port, secure: false, allowPlain: true };
    const transport = createMailTransport({ ...plain, ...settings }, { ...OPTIONS, ...options });
    try {
      return await transport.deliver(message, 'an-id').then(
        () => undefined,
        (error: unknown) => error as DeliveryError,
      );
    } finally {
      await transport.close();
    }
  };

  it('arrives as text and HTML, marked as sent by a machine', async () => {
    expect(await deliver()).to.equal(undefined);
    const message = server.messages.at(-1);
    expect(message?.subject).to.equal(MESSAGE.subject);
    expect(message?.from).to.include({ address: 'login@example.test' });
    expect(message?.to?.map(({ address }) => address)).to.deep.equal([MESSAGE.to]);
    expect(message?.text?.trim()).to.equal(MESSAGE.text);
    expect(message?.html?.trim()).to.equal(MESSAGE.html);
    expect(message?.messageId).to.match(/^<[\w-]+@login\.example\.test>$/);
    const headers = Object.fromEntries((message?.headers ?? []).map(({ key, value }) => [key, value]));
    expect(headers['auto-submitted']).to.equal('auto-generated');
    expect(headers['content-type']).to.match(/^multipart\/alternative/);
  });

  it('has one recipient and no injected header, whatever is in its fields', async () => {
    const before = server.recipients.length;
    await deliver({ ...MESSAGE, subject: 'Hello\r\nBcc: eve@example.test\r\n\r\nBody' });
    await deliver({ ...MESSAGE, to: 'ada@example.test, eve@example.test' });
    await deliver({ ...MESSAGE, to: 'ada@example.test\r\nBcc: eve@example.test' });
    expect(server.recipients.slice(before)).not.to.include('eve@example.test');
    for (const message of server.messages) expect(message.bcc ?? []).to.deep.equal([]);
  });

  it('can go to an internationalized address', async () => {
    expect(await deliver({ ...MESSAGE, to: 'üser@例え.test' })).to.equal(undefined);
    expect(server.messages.at(-1)?.text?.trim()).to.equal(MESSAGE.text);
  });

  for (const [what, code, expected] of [
    ['is put off by a greylisting server', 451, 'unavailable'],
    ['is put off by a full mailbox', 452, 'unavailable'],
    ['is refused for good', 550, 'rejected'],
    ['is refused as spam', 554, 'rejected'],
  ] as const) {
    it(`${what} (${code}): ${expected}`, async () => {
      server.behave({ code });
      const error = await deliver();
      expect(error).to.be.instanceOf(DeliveryError);
      expect(error).to.include({ code: expected, providerCode: String(code) });
    });
  }

  it('gives up a server that does not answer', async () => {
    server.behave('silence');
    expect(await deliver(MESSAGE, {}, HASTY)).to.include({ code: 'unavailable' });
  });

  it('gives up a server that trickles its answers, each in time', async () => {
    const trickling = net.createServer((socket) => {
      let drip: NodeJS.Timeout | undefined;
      socket.write('220 ready\r\n');
      socket.on('data', () => {
        drip ??= setInterval(() => socket.write('250-X-ONE-MORE\r\n'), 50);
      });
      socket.on('close', () => clearInterval(drip)).on('error', () => {});
    });
    trickling.listen(0, '127.0.0.1');
    await once(trickling, 'listening');
    try {
      const { port } = trickling.address() as AddressInfo;
      expect(await deliver(MESSAGE, { port }, HASTY)).to.include({ code: 'unavailable' });
    } finally {
      trickling.close();
    }
  });

  it('fails where no server listens', async () => {
    expect(await deliver(MESSAGE, { port: 1 })).to.include({ code: 'unavailable' });
  });

  it('logs in where it should, and reports refused credentials', async () => {
    const guarded = await startMailServer({
      authOptional: false,
      allowInsecureAuth: true,
      onAuth: ({ username, password }, _session, done) =>
        username === 'me' && password === 'p@ss' ? done(null, { user: 'me' }) : done(new Error('wrong')),
    });
    try {
      const url = new URL(`smtp://me:p%40ss@127.0.0.1:${guarded.port}`);
      expect(await deliver(MESSAGE, smtpSettings(url))).to.equal(undefined);
      const error = await deliver(MESSAGE, { ...smtpSettings(url), password: 'hidden' });
      expect(error).to.include({ code: 'rejected' });
      expect(JSON.stringify(error)).not.to.contain('hidden');
      expect(String(error)).not.to.contain('hidden');
    } finally {
      await guarded.stop();
    }
  });

  describe('over TLS', () => {
    let directory: string;
    let ca: string;
    let certificate: { cert: string; key: string };
    before(async () => {
      directory = mkdtempSync(join(tmpdir(), 'gatehouse-mail-'));
      const { cert, key, caFile } = await localCertificate(directory, ['localhost', '127.0.0.1'], Date.now);
      certificate = { cert, key };
      ca = await readFile(caFile, 'utf8');
    });
    after(() => rm(directory, { recursive: true, force: true }));

    for (const [how, secure] of [
      ['from the first byte', true],
      ['by STARTTLS', false],
    ] as const) {
      it(`${how} goes only to a server with a trusted certificate`, async () => {
        const encrypted = await startMailServer({ secure, disabledCommands: [], ...certificate });
        try {
          const settings = { port: encrypted.port, secure, allowPlain: false };
          expect(await deliver(MESSAGE, settings, { ca })).to.equal(undefined);
          expect(encrypted.messages).to.have.length(1);
          expect(await deliver(MESSAGE, settings), 'an unknown authority').to.include({
            code: 'unavailable',
          });
          expect(encrypted.messages).to.have.length(1);
        } finally {
          await encrypted.stop();
        }
      });
    }

    it('is required: a server that does not offer it gets neither the password nor the mail', async () => {
      const before = server.offered();
      expect(await deliver(MESSAGE, { allowPlain: false, user: 'me', password: 'secret' })).to.be.instanceOf(
        DeliveryError,
      );
      expect(server.offered()).to.equal(before);
    });
  });

  for (const [url, expected] of [
    ['smtp://mail.example.test', { host: 'mail.example.test', port: 587, secure: false, allowPlain: false }],
    ['smtps://mail.example.test', { port: 465, secure: true, allowPlain: false }],
    ['smtps://mail.example.test:2465', { port: 2465, secure: true }],
    ['smtp://localhost:1025', { host: 'localhost', port: 1025, allowPlain: true }],
    ['smtp://[::1]:1025', { host: '::1', allowPlain: true }],
    ['smtp://127.example.test', { allowPlain: false }],
    ['smtp://a%40b:c%3Ad@mail.example.test', { user: 'a@b', password: 'c:d' }],
  ] as const) {
    it(`is configured with ${url}`, () => expect(smtpSettings(new URL(url))).to.deep.include(expected));
  }
});
