// Encrypted assertions: the supported algorithms, and the one error for everything that cannot be decrypted.
import { constants, createCipheriv, createPublicKey, publicEncrypt, randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { certificateOf, type KeyAndCertificate, makeCertificate } from '../../saml/support.ts';
import {
  assertion,
  CLAIMS,
  response,
  type SamlWorld,
  SIGN_IN,
  type StartedLogin,
  samlWorld,
  signed,
} from './provider.ts';

const XENC = 'http://www.w3.org/2001/04/xmlenc#';
const XENC11 = 'http://www.w3.org/2009/xmlenc11#';
const DS = 'http://www.w3.org/2000/09/xmldsig#';

interface Encryption {
  cipher?: 'aes-256-gcm' | 'aes-128-gcm' | 'aes-256-cbc' | 'aes-128-cbc';
  /** The algorithm that encrypts the key. */
  wrapping?: string;
  digest?: string;
  /** Whether the EncryptedKey is next to the EncryptedData, not in it. */
  beside?: boolean;
  /** Changes the ciphertext. */
  bend?: (sealed: Buffer) => Buffer;
}

const PADDING: Record<string, number> = { [`${XENC}rsa-1_5`]: constants.RSA_PKCS1_PADDING };

function encrypted(text: string, certificate: string, over: Encryption = {}): string {
  const { cipher = 'aes-256-gcm', wrapping = `${XENC}rsa-oaep-mgf1p`, digest, beside = false } = over;
  const bits = Number(cipher.slice(4, 7));
  const key = randomBytes(bits / 8);
  const sealed = cipher.endsWith('gcm') ? gcm(cipher as 'aes-256-gcm', key, text) : cbc(cipher, key, text);
  const oaepHash = digest?.endsWith('sha256') === true ? 'sha256' : 'sha1';
  const padding = PADDING[wrapping] ?? constants.RSA_PKCS1_OAEP_PADDING;
  const wrapped = publicEncrypt(
    {
      key: createPublicKey(certificate),
      padding,
      ...(padding === constants.RSA_PKCS1_OAEP_PADDING && { oaepHash }),
    },
    key,
  );
  const method = cipher.endsWith('gcm') ? `${XENC11}aes${bits}-gcm` : `${XENC}aes${bits}-cbc`;
  const value = (bytes: Buffer) =>
    `<xenc:CipherData><xenc:CipherValue>${bytes.toString('base64')}</xenc:CipherValue></xenc:CipherData>`;
  const digestMethod = digest === undefined ? '' : `<ds:DigestMethod Algorithm="${digest}"/>`;
  const encryptedKey = `<xenc:EncryptedKey xmlns:xenc="${XENC}" xmlns:ds="${DS}"><xenc:EncryptionMethod Algorithm="${wrapping}">${digestMethod}</xenc:EncryptionMethod>${value(wrapped)}</xenc:EncryptedKey>`;
  const info = `<ds:KeyInfo xmlns:ds="${DS}">${beside ? '' : encryptedKey}</ds:KeyInfo>`;
  const data = `<xenc:EncryptedData xmlns:xenc="${XENC}" Type="${XENC}Element"><xenc:EncryptionMethod Algorithm="${method}"/>${info}${value(over.bend?.(sealed) ?? sealed)}</xenc:EncryptedData>`;
  return `<saml:EncryptedAssertion xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion">${data}${beside ? encryptedKey : ''}</saml:EncryptedAssertion>`;
}

function gcm(name: 'aes-256-gcm' | 'aes-128-gcm', key: Buffer, text: string): Buffer {
  const iv = randomBytes(12);
  const cipher = createCipheriv(name, key, iv);
  return Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
}

/** Encrypts with the padding of XML Encryption 1.1 §5.2: arbitrary bytes, and their number. */
function cbc(name: string, key: Buffer, text: string): Buffer {
  const iv = randomBytes(16);
  const plain = Buffer.from(text);
  const length = 16 - (plain.length % 16);
  const padding = Buffer.concat([randomBytes(length - 1), Buffer.from([length])]);
  const cipher = createCipheriv(name, key, iv).setAutoPadding(false);
  return Buffer.concat([iv, cipher.update(Buffer.concat([plain, padding])), cipher.final()]);
}

describe('an encrypted assertion', () => {
  let world: SamlWorld;
  let ours: KeyAndCertificate;
  before(async () => {
    ours = await makeCertificate();
    world = await samlWorld(
      () => ({ decryptionKey: { key: ours.privateKey, cert: ours.certificate } }),
      (key) => ({
        connections: [
          {
            name: 'plain',
            strategy: 'samlp',
            enabled_clients: ['web'],
            options: { signInEndpoint: SIGN_IN, signingCert: key.certificate },
          },
          ...Object.entries({ strict: [], excepted: ['aes256-cbc', 'rsa-1_5'] }).map(
            ([name, algorithm_exceptions]) => ({
              name,
              strategy: 'samlp',
              enabled_clients: ['web'],
              options: {
                signInEndpoint: SIGN_IN,
                signingCert: key.certificate,
                decryptionKey: ours.privateKey,
                assertion_decryption_settings: { algorithm_profile: 'v2026-1', algorithm_exceptions },
              },
            }),
          ),
        ],
      }),
    );
  });
  after(() => world.server.stop());

  const respond = (away: StartedLogin, content: string) =>
    response(world.server, content, { inResponseTo: away.requestId });
  const inner = (away: StartedLogin, over = {}) =>
    signed(
      assertion(world.server, { inResponseTo: away.requestId, ...over }),
      'Assertion',
      world.key.privateKey,
    );
  const finishWith = async (away: StartedLogin, xml: string) =>
    world.finish(away.agent, await world.post(away, xml));

  const ways: Record<string, Encryption> = {
    'AES-256-GCM': {},
    'AES-128-GCM, with the key next to the data': { cipher: 'aes-128-gcm', beside: true },
    'AES-256-CBC': { cipher: 'aes-256-cbc' },
    'AES-128-CBC': { cipher: 'aes-128-cbc' },
    'RSA-OAEP with SHA-256': { wrapping: `${XENC11}rsa-oaep`, digest: `${XENC}sha256` },
  };
  for (const [what, over] of Object.entries(ways)) {
    it(`is accepted with ${what}`, async () => {
      const away = await world.away();
      expect(
        await finishWith(away, respond(away, encrypted(inner(away), ours.certificate, over))),
      ).to.have.property('code');
    });
  }

  const profiled: [string, string, Encryption, boolean][] = [
    ['strict', 'AES-256-GCM', {}, true],
    ['strict', 'AES-256-CBC', { cipher: 'aes-256-cbc' }, false],
    ['excepted', 'AES-256-CBC', { cipher: 'aes-256-cbc' }, true],
    ['excepted', 'AES-128-CBC', { cipher: 'aes-128-cbc' }, false],
    ['excepted', 'PKCS #1 v1.5', { wrapping: `${XENC}rsa-1_5` }, false],
  ];
  for (const [connection, what, over, isTaken] of profiled) {
    it(`is ${isTaken ? 'accepted' : 'rejected'} with ${what} by the connection ${connection}`, async () => {
      const away = await world.away({ connection });
      const content = inner(away, { audience: `urn:auth0:localhost:${connection}` });
      const answer = await finishWith(away, respond(away, encrypted(content, ours.certificate, over)));
      if (isTaken) expect(answer).to.have.property('code');
      else expect(answer.error_description).to.equal('The encrypted assertion cannot be read.');
    });
  }

  it('is accepted if the Response around it is signed', async () => {
    const away = await world.away();
    const plain = assertion(world.server, { inResponseTo: away.requestId });
    const xml = respond(away, encrypted(plain, ours.certificate));
    expect(await finishWith(away, signed(xml, 'Response', world.key.privateKey))).to.have.property('code');
  });

  it('may be encrypted for the key of the tenant, if the connection has no key', async () => {
    const certificate = await certificateOf(world.server);
    const away = await world.away({ connection: 'plain' });
    const content = encrypted(inner(away, { audience: 'urn:auth0:localhost:plain' }), certificate);
    expect(await finishWith(away, respond(away, content))).to.have.property('code');
  });

  const refusals: Record<string, (away: StartedLogin) => string> = {
    'is for another key': (away) => encrypted(inner(away), world.foreign.certificate),
    'has a key wrapped by PKCS #1 v1.5': (away) =>
      encrypted(inner(away), ours.certificate, { wrapping: `${XENC}rsa-1_5` }),
    'is not signed inside': (away) =>
      encrypted(assertion(world.server, { inResponseTo: away.requestId }), ours.certificate),
    'is signed by another key inside': (away) =>
      encrypted(
        signed(
          assertion(world.server, { inResponseTo: away.requestId }),
          'Assertion',
          world.foreign.privateKey,
        ),
        ours.certificate,
      ),
    'was modified (CBC)': (away) =>
      encrypted(inner(away), ours.certificate, {
        cipher: 'aes-256-cbc',
        bend: (sealed) => {
          sealed[20] = (sealed[20] ?? 0) ^ 1;
          return sealed;
        },
      }),
    'has a wrong padding (CBC)': (away) =>
      encrypted(inner(away), ours.certificate, {
        cipher: 'aes-256-cbc',
        bend: (sealed) => sealed.subarray(0, -16),
      }),
    'was modified (GCM)': (away) =>
      encrypted(inner(away), ours.certificate, {
        bend: (sealed) => {
          sealed[20] = (sealed[20] ?? 0) ^ 1;
          return sealed;
        },
      }),
    'is cut short': (away) =>
      encrypted(inner(away), ours.certificate, { bend: (sealed) => sealed.subarray(0, 10) }),
    'does not contain an assertion': () => encrypted('<a/>', ours.certificate),
  };
  for (const [what, make] of Object.entries(refusals)) {
    it(`is rejected with the same error when it ${what}`, async () => {
      const away = await world.away();
      expect(await finishWith(away, respond(away, make(away)))).to.include({
        error: 'invalid_request',
        error_description: 'The encrypted assertion cannot be read.',
      });
    });
  }

  const groups = (count: number) => ({
    attributes: {
      [`${CLAIMS}emailaddress`]: 'grace@upstream.test',
      groups: Array.from({ length: count }, (_, at) => `group ${at}`),
    },
  });

  it('may contain an assertion with two thousand groups', async () => {
    const away = await world.away();
    const content = encrypted(inner(away, groups(2_000)), ours.certificate);
    expect(await finishWith(away, respond(away, content))).to.have.property('code');
  });

  /** What anybody may encrypt for our key, which is public. */
  const excessive: Record<string, string> = {
    'is nested deeply': '<a>'.repeat(15_000) + '</a>'.repeat(15_000),
    'has too many elements': `<a>${'<b/>'.repeat(30_000)}</a>`,
    'has too many attributes': `<a>${'<b c="" d="" e="" f=""/>'.repeat(4_000)}</a>`,
    'has too many namespaces': `<a>${'<b xmlns:c="urn:c">'.repeat(20)}${'<c:d/>'.repeat(9_000)}`,
    'defines entities': '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
    'has a comment': '<a><!-- b --></a>',
    'has an instruction': '<a><?b c?></a>',
    'only begins': '<'.repeat(100_000),
  };
  for (const [what, content] of Object.entries(excessive)) {
    it(`costs the thread that answers little when its content ${what}`, async () => {
      const sealed = encrypted(content, ours.certificate);
      let least = Number.POSITIVE_INFINITY;
      for (let left = 5; left > 0 && least >= 30; left--) {
        const away = await world.away();
        const before = process.threadCpuUsage();
        const answer = await world.post(away, respond(away, sealed));
        const { user, system } = process.threadCpuUsage(before);
        least = Math.min(least, (user + system) / 1000);
        expect((await world.finish(away.agent, answer)).error_description).to.equal(
          'The encrypted assertion cannot be read.',
        );
      }
      // It decrypts with two keys of 2,048 bits.
      expect(least).to.be.below(30);
    });
  }

  it('is rejected with another assertion next to it', async () => {
    const away = await world.away();
    const xml = respond(away, `${encrypted(inner(away), ours.certificate)}${inner(away)}`);
    expect(await finishWith(away, xml)).to.have.property('error');
  });
});
