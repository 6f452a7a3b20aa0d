import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { tenant } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const policies = {
  none: { passwordPolicy: 'none' },
  low: { passwordPolicy: 'low' },
  fair: { passwordPolicy: 'fair' },
  good: { passwordPolicy: 'good' },
  default: {},
  excellent: { passwordPolicy: 'excellent' },
  'none-3': { passwordPolicy: 'none', password_complexity_options: { min_length: 3 } },
  'excellent-4': { passwordPolicy: 'excellent', password_complexity_options: { min_length: 4 } },
  'low-128': { passwordPolicy: 'low', password_complexity_options: { min_length: 128 } },
  dictionary: {
    passwordPolicy: 'none',
    password_dictionary: { enable: true, dictionary: ['Gäte-House', 'Müller-Straße'.normalize('NFD')] },
  },
  'dictionary-off': {
    passwordPolicy: 'none',
    password_dictionary: { enable: false, dictionary: ['secret'] },
  },
  personal: { passwordPolicy: 'none', password_no_personal_info: { enable: true } },
  'personal-username': {
    passwordPolicy: 'none',
    requires_username: true,
    password_no_personal_info: { enable: true },
  },
} as const;
type Policy = keyof typeof policies;

/** The rules, with the hosted service's messages. */
const lengthAtLeast = (length: number, verified: boolean) => ({
  code: 'lengthAtLeast',
  message: 'At least %d characters in length',
  format: [length],
  verified,
});
const items = (verdicts: readonly boolean[]) =>
  [
    ['lowerCase', 'lower case letters (a-z)'],
    ['upperCase', 'upper case letters (A-Z)'],
    ['numbers', 'numbers (i.e. 0-9)'],
    ['specialCharacters', 'special characters (e.g. !@#$%^&*)'],
  ]
    .slice(0, verdicts.length)
    .map(([code, message], i) => ({ code, message, verified: verdicts[i] }));
const shouldContain = (verified: boolean, ...verdicts: [boolean, boolean, boolean]) => ({
  code: 'shouldContain',
  message: 'Should contain:',
  items: items(verdicts),
  verified,
});
const containsAtLeast = (verified: boolean, ...verdicts: [boolean, boolean, boolean, boolean]) => ({
  code: 'containsAtLeast',
  message: 'Contain at least %d of the following %d types of characters:',
  format: [3, 4],
  items: items(verdicts),
  verified,
});
const identicalChars = (verified: boolean) => ({
  code: 'identicalChars',
  message: 'No more than %d identical characters in a row (e.g., "%s" not allowed)',
  format: [2, 'aaa'],
  verified,
});
const maxLength = {
  code: 'maxLength',
  message: 'At most %d bytes in length',
  format: [512],
  verified: false,
};

const CLASSES = [
  ' * lower case letters (a-z)',
  ' * upper case letters (A-Z)',
  ' * numbers (i.e. 0-9)',
  ' * special characters (e.g. !@#$%^&*)',
];
const AT_LEAST_3 = ['* Contain at least 3 of the following 4 types of characters:', ...CLASSES];

describe('password policies', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({
      tenant: {
        ...tenant,
        attackProtection: { rateLimits: { signup: { capacity: 10_000, perMinute: 1 } } },
        databases: [
          ...tenant.databases,
          ...Object.entries(policies).map(([name, options]) => ({ name, enabled_clients: ['web'], options })),
        ],
      },
    });
  });
  after(() => server.stop());

  let count = 0;
  const signUp = (connection: Policy, password: string, over: object = {}) =>
    createAgent(server).request('/dbconnections/signup', {
      json: { client_id: 'web', connection, email: `someone${++count}@example.test`, password, ...over },
    });

  for (const [policy, passwords] of [
    ['none', ['x', ' ', '😀']],
    ['low', ['abcdef', 'éééééé', '😀😀😀😀😀😀']],
    ['fair', ['abcdeF12', 'Ünïcode1']],
    ['good', ['abcdeF12', 'abcdef1!', 'ABCDEF1!', 'abcdEFG!']],
    ['default', ['abcdeF12']],
    ['excellent', ['abcdefgH12', 'aabbccHH11', 'aaBaaBaa12']],
    ['none-3', ['abc']],
    ['excellent-4', ['aB1!']],
    ['low-128', ['x'.repeat(128)]],
  ] as const) {
    it(`${policy} accepts ${passwords.join(' and ')}`, async () => {
      for (const password of passwords) {
        expect((await signUp(policy, password)).status, password).to.equal(200);
      }
    });
  }

  for (const [policy, password, rules, text] of [
    ['low', 'abcde', [lengthAtLeast(6, false)], ['* At least 6 characters in length']],
    [
      'fair',
      'abcdeF1',
      [lengthAtLeast(8, false), shouldContain(true, true, true, true)],
      ['* At least 8 characters in length', '* Should contain:', ...CLASSES.slice(0, 3)],
    ],
    [
      'fair',
      'abcdef12',
      [lengthAtLeast(8, true), shouldContain(false, true, false, true)],
      ['* At least 8 characters in length', '* Should contain:', ...CLASSES.slice(0, 3)],
    ],
    [
      'good',
      'abcdeF1',
      [lengthAtLeast(8, false), containsAtLeast(true, true, true, true, false)],
      ['* At least 8 characters in length', ...AT_LEAST_3],
    ],
    [
      'default',
      'abcdefg!',
      [lengthAtLeast(8, true), containsAtLeast(false, true, false, false, true)],
      ['* At least 8 characters in length', ...AT_LEAST_3],
    ],
    [
      'excellent',
      'abcdefgH1',
      [lengthAtLeast(10, false), containsAtLeast(true, true, true, true, false), identicalChars(true)],
      [
        '* At least 10 characters in length',
        ...AT_LEAST_3,
        '* No more than 2 identical characters in a row (e.g., "aaa" not allowed)',
      ],
    ],
    [
      'excellent',
      'abcdefHHH1',
      [lengthAtLeast(10, true), containsAtLeast(true, true, true, true, false), identicalChars(false)],
      [
        '* At least 10 characters in length',
        ...AT_LEAST_3,
        '* No more than 2 identical characters in a row (e.g., "aaa" not allowed)',
      ],
    ],
    ['none-3', 'ab', [lengthAtLeast(3, false)], ['* At least 3 characters in length']],
    [
      'excellent-4',
      'aB1',
      [lengthAtLeast(4, false), containsAtLeast(true, true, true, true, false), identicalChars(true)],
      [
        '* At least 4 characters in length',
        ...AT_LEAST_3,
        '* No more than 2 identical characters in a row (e.g., "aaa" not allowed)',
      ],
    ],
    ['low-128', 'x'.repeat(127), [lengthAtLeast(128, false)], ['* At least 128 characters in length']],
    [
      'none',
      'x'.repeat(513),
      [{ code: 'nonEmpty', message: 'Non-empty password required', verified: true }, maxLength],
      ['* Non-empty password required', '* At most 512 bytes in length'],
    ],
    [
      'low',
      '😀'.repeat(129),
      [lengthAtLeast(6, true), maxLength],
      ['* At least 6 characters in length', '* At most 512 bytes in length'],
    ],
  ] as const) {
    const shown = password.length > 20 ? `${[...password].length} characters` : password;
    it(`${policy} rejects ${shown}, with each rule and its verdict`, async () => {
      const answer = await signUp(policy, password);
      expect(answer.status).to.equal(400);
      expect(answer.json()).to.deep.equal({
        name: 'PasswordStrengthError',
        code: 'invalid_password',
        message: 'Password is too weak',
        description: { rules, verified: false },
        policy: text.join('\n'),
        statusCode: 400,
      });
    });
  }

  it('check a password alike in composed and decomposed form', async () => {
    // Composed it has too few characters; decomposed it would have enough.
    for (const form of ['NFC', 'NFD']) {
      expect((await signUp('low', 'äöüé'.normalize(form))).status, `${form}, too short`).to.equal(400);
      // A combining mark is not a special character.
      expect((await signUp('good', 'äöüéabcD'.normalize(form))).status, `${form}, two classes`).to.equal(400);
      expect((await signUp('none', 'é'.repeat(256).normalize(form))).status, `${form}, 512 bytes`).to.equal(
        200,
      );
    }
  });

  it('reject words of a dictionary, in any case, but not as part of a password', async () => {
    for (const password of [
      'password',
      'PASSWORD',
      'gäte-house',
      'Müller-Straße',
      'GÄTE-HOUSE'.normalize('NFD'),
    ]) {
      expect((await signUp('dictionary', password)).json(), password).to.deep.equal({
        name: 'PasswordDictionaryError',
        code: 'invalid_password',
        message: 'Password is too common',
        description: 'Password is too common',
        error_description: 'Password is too common',
        statusCode: 400,
      });
    }
    expect((await signUp('dictionary', 'password-of-mine')).status).to.equal(200);
    expect((await signUp('dictionary-off', 'password')).status).to.equal(200);
    expect((await signUp('dictionary-off', 'secret')).status).to.equal(200);
  });

  it('reject a password that contains personal data of the user', async () => {
    for (const [connection, password, over] of [
      ['personal', 'xLovelacex', { email: 'lovelace@example.test' }],
      ['personal', 'my-BYRON-1', { name: 'Ada Byron' }],
      ['personal', 'countess!', { nickname: 'Countess' }],
      ['personal', 'ZOË-ZOË'.normalize('NFD'), { name: 'Zoë' }],
      ['personal', 'given-marie', { user_metadata: { first: 'Marie' } }],
      ['personal', 'curie-1867', { user_metadata: { last: 'Curie' } }],
      ['personal', 'whole-name', { user_metadata: { name: 'whole-name' } }],
      ['personal-username', 'x-lady-x', { username: 'Lady' }],
    ] as const) {
      expect((await signUp(connection, password, over)).json(), password).to.deep.equal({
        name: 'PasswordNoUserInfoError',
        code: 'invalid_password',
        message: 'Password contains user information',
        description: 'Password contains user information',
        error_description: 'Password contains user information',
        statusCode: 400,
      });
    }
  });

  it('do not count two letters, the domain or other metadata as personal data', async () => {
    for (const over of [
      { name: 'Al' },
      { email: 'quite@unrelated.test' },
      { user_metadata: { plan: 'unrelated' } },
      {},
    ]) {
      expect((await signUp('personal', 'al-unrelated', over)).status, JSON.stringify(over)).to.equal(200);
    }
    expect((await signUp('none', 'lovelace', { email: 'lovelace@example.test' })).status).to.equal(200);
  });

  it('return the same verdict for a taken address as for a free one', async () => {
    const email = 'taken@example.test';
    expect((await signUp('good', 'Good-Enough-1', { email })).status).to.equal(200);
    expect((await signUp('good', 'weak', { email })).text).to.equal((await signUp('good', 'weak')).text);
  });
});
