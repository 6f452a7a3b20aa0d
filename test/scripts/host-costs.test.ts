// What the host computes for scripts has a cost that is known before: nothing can interrupt it.
import { createCipheriv, createHash, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { compute, HOST_FUNCTIONS, type Plain } from '../../src/capabilities/scripts/host-functions.ts';
import { publicKeyOf } from '../../src/records/clients/client-keys.ts';
import { appleOptionsSchema } from '../../src/records/connections/openid.ts';
import { rsaPublicKey } from '../../src/records/connections/samlp.ts';
import { startSandbox } from './support.ts';

/** Returns an element of DER. */
function der(tag: number, ...parts: Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const length =
    content.length < 128
      ? Buffer.from([content.length])
      : Buffer.from([0x82, content.length >> 8, content.length & 255]);
  return Buffer.concat([Buffer.from([tag]), length, content]);
}
const sequence = (...parts: Uint8Array[]) => der(0x30, ...parts);
const oid = (hex: string) => der(6, Buffer.from(hex, 'hex'));
const integer = (value: number) => der(2, Buffer.from(value.toString(16).padStart(10, '0'), 'hex'));
const pem = (label: string, bytes: Uint8Array, head = '') =>
  `-----BEGIN ${label}-----\n${head}${Buffer.from(bytes)
    .toString('base64')
    .replace(/.{64}/g, '$&\n')}\n-----END ${label}-----\n`;

const ROUNDS = 2 ** 31 - 1;
const cipher = sequence(oid('60864801650304012a'), der(4, randomBytes(16)));
const encrypted = (algorithm: Buffer) => sequence(algorithm, der(4, randomBytes(1216)));
/** A private key that PBES2 encrypts (RFC 8018 §A.4). */
const pbes2 = (derivation: Buffer) =>
  encrypted(sequence(oid('2a864886f70d01050d'), sequence(derivation, cipher)));
const COSTLY = {
  PBKDF2: pbes2(
    sequence(
      oid('2a864886f70d01050c'),
      sequence(der(4, randomBytes(8)), integer(ROUNDS), sequence(oid('2a864886f70d0209'), der(5))),
    ),
  ),
  scrypt: pbes2(
    sequence(
      oid('2b06010401da47040b'),
      sequence(der(4, randomBytes(8)), integer(16_384), integer(8), integer(16_000)),
    ),
  ),
  'the scheme of PKCS #12': encrypted(
    sequence(oid('2a864886f70d010c0103'), sequence(der(4, randomBytes(8)), integer(ROUNDS))),
  ),
};

/** Encrypts as PEM did (RFC 1421). */
function inOldPem(label: string, bytes: Uint8Array): string {
  const iv = randomBytes(16);
  const first = createHash('md5').update('x').update(iv.subarray(0, 8)).digest();
  const key = Buffer.concat([
    first,
    createHash('md5').update(first).update('x').update(iv.subarray(0, 8)).digest(),
  ]);
  const by = createCipheriv('aes-256-cbc', key, iv);
  const head = `Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,${iv.toString('hex').toUpperCase()}\n\n`;
  return pem(label, Buffer.concat([by.update(bytes), by.final()]), head);
}

describe('the cost of what scripts have the host compute', () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 4096 });
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const data = new Uint8Array(Buffer.from('data'));
  const key = (text: string, passphrase?: string) => JSON.stringify({ text, passphrase });
  const signs = (text: string, passphrase?: string) =>
    compute('sign', ['node:sha256', key(text, passphrase), data]) as Uint8Array;
  const exported = (of: KeyObject, options: object) =>
    String(of.export({ format: 'pem', ...options } as never));

  for (const [name, costly] of Object.entries(COSTLY)) {
    for (const label of ['ENCRYPTED PRIVATE KEY', 'PRIVATE KEY']) {
      it(`no ${label.toLowerCase()} is decrypted with as many rounds of ${name} as it asks for`, () => {
        const refused = /rounds|not supported/;
        expect(() => signs(pem(label, costly), 'x')).to.throw(refused);
        const asPublic = () => compute('verify', ['node:sha256', key(pem(label, costly), 'x'), data, data]);
        expect(asPublic).to.throw(refused);
        expect(() => signs(inOldPem(label, costly), 'x')).to.throw();
        const two = pem('EC PARAMETERS', oid('2a8648ce3d030107')) + pem(label, costly);
        expect(() => signs(two, 'x')).to.throw(refused);
      });
    }
  }

  it('no length hides the rounds', () => {
    const asLong = Buffer.from(COSTLY.PBKDF2);
    // Of indefinite length, as BER allows.
    asLong[1] = 0x80;
    expect(() => signs(pem('PRIVATE KEY', asLong), 'x')).to.throw('not in DER');
    expect(() => signs(pem('PRIVATE KEY', COSTLY.PBKDF2.subarray(0, 60)), 'x')).to.throw('not in DER');
  });

  it('keys are read in every form that is in use, encrypted too', () => {
    for (const { privateKey, publicKey, old } of [
      { ...rsa, old: 'pkcs1' },
      { ...ec, old: 'sec1' },
    ]) {
      const isSigned = (signed: Uint8Array) =>
        compute('verify', ['node:sha256', key(exported(publicKey, { type: 'spki' })), data, signed]);
      const locked = { cipher: 'aes-256-cbc', passphrase: 'x' };
      for (const type of ['pkcs8', old]) {
        expect(isSigned(signs(exported(privateKey, { type })))).to.equal('true');
        expect(isSigned(signs(exported(privateKey, { type, ...locked }), 'x'))).to.equal('true');
        expect(() => signs(exported(privateKey, { type, ...locked }), 'wrong')).to.throw();
        expect(() => signs(exported(privateKey, { type, ...locked }))).to.throw();
      }
    }
  });

  it('no key is read that is larger than its computation may be, or of another kind', () => {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const jwk = { ...privateKey.export({ format: 'jwk' }), d: randomBytes(20_000).toString('base64url') };
    expect(() => compute('sign', ['RS256', JSON.stringify({ jwk }), data])).to.throw();
    const dsa = generateKeyPairSync('dsa', { modulusLength: 1024, divisorLength: 160 }).privateKey;
    expect(() => signs(exported(dsa, { type: 'pkcs8' }))).to.throw('not supported');
    // A DSA key computes its public part when it is read: with such a prime for hours.
    const big = () => der(2, Buffer.concat([Buffer.from([0x7f]), randomBytes(20_000), Buffer.from([1])]));
    const huge = sequence(
      integer(0),
      sequence(oid('2a8648ce380401'), sequence(big(), integer(7), big())),
      der(4, big()),
    );
    expect(() => signs(pem('PRIVATE KEY', huge))).to.throw('at most');
  });

  it('no configuration reads such a key either', () => {
    const big = () => der(2, Buffer.concat([Buffer.from([0x7f]), randomBytes(20_000), Buffer.from([1])]));
    const dsa = sequence(
      integer(0),
      sequence(oid('2a8648ce380401'), sequence(big(), integer(7), big())),
      der(4, big()),
    );
    for (const key of [pem('PRIVATE KEY', dsa), pem('PRIVATE KEY', COSTLY.PBKDF2)]) {
      expect(() => publicKeyOf({ alg: 'RS256', pem: key })).to.throw();
      expect(() => rsaPublicKey(key)).to.throw();
      const before = process.threadCpuUsage();
      const { error } = appleOptionsSchema.safeParse({ app_secret: key });
      expect(error?.issues.flatMap(({ path }) => path)).to.include('app_secret');
      const { user, system } = process.threadCpuUsage(before);
      expect((user + system) / 1000).to.be.below(200);
    }
  });

  it('a script that reads such a key gets an error, and goes on', async () => {
    const sandbox = startSandbox();
    try {
      const script = `try {
          require('crypto').createSign('sha256').update('x').sign({ key: context, passphrase: 'x' });
        } catch (error) { return error.message; }`;
      const args = ['token', pem('ENCRYPTED PRIVATE KEY', COSTLY.PBKDF2)];
      expect(await sandbox.result(script, { args })).to.contain('rounds');
    } finally {
      await sandbox.stop();
    }
  });

  const SIZE = 16 * 1024 * 1024;
  const bytes = new Uint8Array(SIZE);
  const text = 'a'.repeat(SIZE);
  const worst = 'x'.repeat(65_536 - 20);
  const rsaKey = exported(rsa.privateKey, { type: 'pkcs8', cipher: 'aes-256-cbc', passphrase: 'x' });
  /** The costliest call of each function that is not refused. */
  const WORST: Record<string, readonly Plain[]> = {
    encode: [text, 'utf8'],
    decode: [bytes, 'hex'],
    uuid: [],
    random: ['65536'],
    hash: ['md5', bytes],
    hmac: ['sha512', JSON.stringify({ text: 'a'.repeat(60_000) }), bytes],
    sign: ['node:sha512', key(rsaKey, 'x'), bytes],
    verify: ['node:sha512', key(rsaKey, 'x'), bytes, new Uint8Array(512)],
    pbkdf2: [
      new Uint8Array(65_536),
      new Uint8Array(65_536),
      JSON.stringify({ iterations: 1_000_000, keylen: 64, digest: 'sha512' }),
    ],
    bcryptSalt: ['15'],
    bcryptHash: ['a'.repeat(1024), '$2b$12$abcdefghijklmnopqrstuu'],
    bcryptCompare: ['a'.repeat(1024), `$2b$12$${'a'.repeat(53)}`],
    href: [`https://a/${'../a/'.repeat(13_000)}`, ''],
    urlParts: [`https://${'\u4e00\u4e8c\u5341'.repeat(600)}/${worst.slice(3_000)}`],
    urlWith: ['https://a/', 'pathname', '../%zz/'.repeat(9_000)],
  };

  it('every function says what bounds it, and at its bounds takes less than two seconds', () => {
    expect(Object.keys(WORST)).to.have.members(Object.keys(HOST_FUNCTIONS));
    for (const [name, args] of Object.entries(WORST)) {
      const before = process.threadCpuUsage();
      compute(name, args);
      const { user, system } = process.threadCpuUsage(before);
      expect((user + system) / 1000, name).to.be.below(2_000);
    }
  });

  it('every function refuses what is larger than it says', () => {
    for (const [name, { most }] of Object.entries(HOST_FUNCTIONS)) {
      for (const [index, size] of most.entries()) {
        const args = most.map((_, at) => (at === index ? new Uint8Array(size + 1) : ''));
        expect(() => compute(name, args), name).to.throw(`at most ${size}`);
      }
    }
    const pbkdf2 = (parameters: object) => compute('pbkdf2', [data, data, JSON.stringify(parameters)]);
    expect(() => pbkdf2({ iterations: 2_000_001, keylen: 32, digest: 'sha256' })).to.throw('too many');
    expect(() => pbkdf2({ iterations: 1_000_001, keylen: 64, digest: 'sha512' })).to.throw('too many');
    expect(() => compute('bcryptSalt', ['16'])).to.throw('from 4 to 15');
    expect(() => compute('random', ['65537'])).to.throw('random bytes');
  });
});
