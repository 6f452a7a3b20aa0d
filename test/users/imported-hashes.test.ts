// Hashes of other systems, with values that other implementations computed.
import { hash as argon2Hash } from '@node-rs/argon2';
import bcrypt from 'bcryptjs';
import { expect } from 'chai';
import { createHasher } from '../../src/users/hashing.ts';
import { checkHash } from '../../src/users/imported-hashes/imported-hashes.ts';
import { CHEAP } from '../support/server.ts';

const PASSWORD = 'correct horse é';
const hasher = createHasher({ cost: CHEAP });
const SCRYPT =
  '23cff6b57093c4403b31d3d4a959e04616afb99cc872ee2518d06219f93b5e5929e0ee9a51e029664aac55a00811e9112ee016f3a1189c433222eea76dddfc4a';

const hmac = (digest: string, key: string, value: string) => ({
  algorithm: 'hmac',
  hash: { value, encoding: 'hex', digest, key: { value: key } },
});

const RIGHT: Record<string, object> = {
  'md5 with a salt before': {
    algorithm: 'md5',
    hash: { value: '25ccb8d8aabea7418c6651751a8c3801', encoding: 'hex' },
    salt: { value: 'pepper' },
  },
  'sha1 with a salt after': {
    algorithm: 'sha1',
    hash: { value: 'loQy6bsIeIaJSvDVeXZWHCOsKlI=', encoding: 'base64' },
    salt: { value: '00ff10', encoding: 'hex', position: 'suffix' },
  },
  'sha256 of UTF-16': {
    algorithm: 'sha256',
    hash: { value: 'fd94a15680d3d05738003b1193b83db50a8ec0e037fed5969c7505bebdc16145', encoding: 'hex' },
    password: { encoding: 'utf16le' },
  },
  'sha256 of Latin-1': {
    algorithm: 'sha256',
    hash: { value: '61fd5299426fe37082bd197cc908766ff35e1fd8388dd3dfdaa64f1497856b7b', encoding: 'hex' },
    password: { encoding: 'latin1' },
  },
  sha512: {
    algorithm: 'sha512',
    hash: {
      value:
        '3175030395c921bcc22f5ce487427b8bcd0d81260bcb4929a5dc529dd397f2478ec4f7e7f16359dc171314bd7a566e4591726d8cb0bdcdd4eccf934048dc6386',
      encoding: 'hex',
    },
  },
  hmac: {
    algorithm: 'hmac',
    hash: {
      value: '32517170ded17772e9a2ec2fce21acc3455220b2c3c02b1419a5d43f19984407',
      encoding: 'hex',
      digest: 'sha256',
      key: { value: 'a2V5', encoding: 'base64' },
    },
  },
  'hmac of MD4': hmac('md4', 'key', '691ee1d00f789b42202972b2d60ba7f8'),
  'hmac of Whirlpool': hmac(
    'whirlpool',
    'key',
    '3469efb4d3645ded0a631805986a3b33c519eec1056fe13a1acfbc0c1d64e525839bd247a728ec178541bbee69dc07d99d64e388017633d53154b08878b8bd19',
  ),
  'hmac of Whirlpool, by a key longer than its block': hmac(
    'whirlpool',
    'k'.repeat(100),
    'fd3e401eac076b2d08e7841ddfd3682088f2b9d9a41b6a022a8d4d76e73c6faf538d81a1f18a5e87ba7aa72afbafaf05fd3952ece03a62268e038c4578ffb647',
  ),
  'hmac with a salt': {
    algorithm: 'hmac',
    hash: {
      value: '/OR5IdYajTfRNXjIX+NpVMmsG78UjYtoy+8lFkOlLjS9lwL3UD8VPspg0ih/Va2Bbc06ADaDnGQi9yseZgcE8Q==',
      encoding: 'base64',
      digest: 'sha512',
      key: { value: 'key' },
    },
    salt: { value: 'na' },
  },
  'ldap {SSHA}': { algorithm: 'ldap', hash: { value: '{SSHA}/3wV0JJYw19v9+Wg5/t+vv0k7R9zYWx0' } },
  'ldap {MD5}': { algorithm: 'ldap', hash: { value: '{MD5}mdTqo8SmDcMiisuCO4kkvg==', encoding: 'utf8' } },
  'ldap {SSHA512}': {
    algorithm: 'ldap',
    hash: {
      value:
        '{SSHA512}ZguhTdFCLabh0/BXxjImlCrjYEz52gJCGnyY70XsaQwgEyS+3pUd8n81hvdHDZ+Tldm5d18T5E6M49cA5GOeJ3NhbHRzYWx0',
    },
  },
  pbkdf2: {
    algorithm: 'pbkdf2',
    hash: {
      value: '$pbkdf2-sha256$i=1000,l=32$MDEyMzQ1Njc4OWFiY2RlZg$4XDspDRv/7n9wuJfaGpXw8XZEL0JUuwJpcZGQDTRGhM',
    },
  },
  'pbkdf2 with the defaults': {
    algorithm: 'pbkdf2',
    hash: {
      value:
        '$pbkdf2-sha512$MDEyMzQ1Njc4OWFiY2RlZg$Wm2Qxch/nM9BfOCV4beN61c9VK9QIQcfoEWFxDRuPfQbdQvnovvNjRnxPlYb/En+7rFg5B1wiZzByQSpmxMwYg',
    },
  },
  scrypt: {
    algorithm: 'scrypt',
    hash: { value: SCRYPT, encoding: 'hex' },
    salt: { value: 'sea' },
    keylen: 64,
  },
};

const scryptWith = (more: object) => ({ ...RIGHT.scrypt, ...more });
const textHash = (algorithm: string, value: string, more: object = {}) => ({
  algorithm,
  hash: { value },
  ...more,
});
const hex = (algorithm: string, value: string) => ({ algorithm, hash: { value, encoding: 'hex' } });
const BCRYPT_TAIL = '.abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ';
const ARGON2_TAIL = '$c29tZXNhbHRzb21l$YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE';

const REFUSED: Record<string, unknown> = {
  'no object': 'md5',
  'an unknown algorithm': hex('whirlpool', '00'),
  'a name of the prototype': hex('constructor', '00'),
  'a digest cut short': hex('sha256', 'fd94a15680d3d057'),
  'a digest that is not hex': hex('md5', 'zzccb8d8aabea7418c6651751a8c3801'),
  'an hmac without a key': { algorithm: 'hmac', hash: { value: 'aa', encoding: 'hex', digest: 'md5' } },
  'an unknown ldap scheme': textHash('ldap', '{CRYPT}abcdefgh'),
  'an ldap digest cut short': textHash('ldap', '{SHA}YWJj'),
  'an ldap hash with a salt beside': textHash('ldap', '{SHA}YWJj', { salt: { value: 'x' } }),
  'bcrypt of too many rounds': textHash('bcrypt', `$2b$15$${BCRYPT_TAIL.slice(0, 53)}`),
  'bcrypt whose salt fills the 72 bytes': textHash('bcrypt', `$2b$10$${BCRYPT_TAIL.slice(0, 53)}`, {
    salt: { value: 's'.repeat(72) },
  }),
  'argon2 of too much memory': textHash('argon2', `$argon2id$v=19$m=4194304,t=1,p=1${ARGON2_TAIL}`),
  'argon2 of too many passes': textHash('argon2', `$argon2id$v=19$m=262144,t=16,p=1${ARGON2_TAIL}`),
  'argon2 that is no PHC string': textHash('argon2', 'argon2'),
  'pbkdf2 of too many iterations': textHash('pbkdf2', '$pbkdf2-sha256$i=99999999,l=32$c2FsdA$YWJj'),
  'pbkdf2 of a key of one byte': textHash('pbkdf2', '$pbkdf2-sha256$i=1000,l=1$c2FsdA$YQ'),
  'pbkdf2 shorter than it says': textHash('pbkdf2', '$pbkdf2-sha256$i=1000,l=32$c2FsdA$YWJj'),
  'scrypt without keylen': { algorithm: 'scrypt', hash: { value: SCRYPT, encoding: 'hex' } },
  'scrypt of a key of one byte': scryptWith({ keylen: 1, hash: { value: 'aa', encoding: 'hex' } }),
  'scrypt of too much memory': scryptWith({ cost: 2 ** 20, blockSize: 64 }),
  'scrypt of a cost that is no power of two': scryptWith({ cost: 1000 }),
  'a member that there is none of': { ...RIGHT.sha512, rounds: 1 },
};

describe('password hashes of other systems', () => {
  const check = async (custom: object, password: string) => {
    const judged = checkHash(custom);
    if (!('hash' in judged)) throw new Error(judged.fault);
    return hasher.verify(judged.hash, password);
  };

  it('match the MD4 values of RFC 1320', async () => {
    const digests = {
      '': '31d6cfe0d16ae931b73c59d7e0c089c0',
      abc: 'a448017aaf21d8525fc10ae87aa6729d',
      '12345678901234567890123456789012345678901234567890123456789012345678901234567890':
        'e33b4ddc9c38f2199c3e7b164fcc0536',
    };
    for (const [text, digest] of Object.entries(digests)) {
      expect((await check(hex('md4', digest), text)).ok, text).to.equal(true);
      expect((await check(hex('md4', digest), `${text} `)).ok, text).to.equal(false);
    }
  });

  for (const [name, custom] of Object.entries(RIGHT)) {
    it(`are verified: ${name}`, async () => {
      expect(await check(custom, PASSWORD)).to.deep.equal({ ok: true, stale: true });
      for (const wrong of ['correct horse', '', `${PASSWORD} `]) {
        expect((await check(custom, wrong)).ok, wrong).to.equal(false);
      }
    });
  }

  it('are verified for each kind of argon2, and for bcrypt with a salt', async () => {
    for (const algorithm of [0, 1, 2]) {
      const value = await argon2Hash(PASSWORD, { memoryCost: 64, timeCost: 1, algorithm });
      expect((await check(textHash('argon2', value), PASSWORD)).ok).to.equal(true);
      expect((await check(textHash('argon2', value), 'other')).ok).to.equal(false);
    }
    const value = (await bcrypt.hash(`na${PASSWORD}`, 4)).replace('$2b$', '$2y$');
    expect((await check(textHash('bcrypt', value, { salt: { value: 'na' } }), PASSWORD)).ok).to.equal(true);
    expect((await check(textHash('bcrypt', value), PASSWORD)).ok).to.equal(false);
  });

  it('of Latin-1 do not match a password with characters beyond it', async () => {
    const custom = { ...RIGHT['sha256 of Latin-1'] };
    expect((await check(custom, PASSWORD.replace('é', String.fromCharCode(0x100 + 0xe9)))).ok).to.equal(
      false,
    );
  });

  for (const [name, custom] of Object.entries(REFUSED)) {
    it(`are rejected: ${name}`, () => {
      expect(checkHash(custom)).to.have.property('fault').that.is.a('string').and.not.equal('');
    });
  }

  it('take at least as long as our own, right or wrong, so that the time reveals no user', async () => {
    const real = createHasher();
    const judged = checkHash(RIGHT.sha512) as { hash: string };
    // CPU time, as it does not depend on what else the machine does.
    const time = async (work: () => Promise<unknown>) => {
      await work();
      const { user: started } = process.cpuUsage();
      for (let count = 0; count < 5; count++) await work();
      return process.cpuUsage().user - started;
    };
    const nobody = await time(() => real.verifyNothing(PASSWORD));
    const imported = await time(() => real.verify(judged.hash, 'wrong'));
    expect(imported).to.be.greaterThan(nobody * 0.5);
  });
});
