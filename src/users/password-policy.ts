// The password policy of a database connection, from its `password_options` or else from the older options. All checks of a
// password use this one policy.

import { CHARACTER_TYPES, type CharacterType } from '../records/connections/password-options.ts';
import { MAX_PASSWORD_LENGTH, normalizePassword } from '../records/database-options.ts';
import type { DatabaseOptions } from '../records/tenant/tenant.ts';

export type { RuleVerdict };

export interface PolicyVerdict {
  rules: RuleVerdict[];
  verified: boolean;
}

/** The rules for passwords of a connection. */
interface PasswordPolicy {
  /** In characters; undefined if any non-empty password is long enough. */
  minLength: number | undefined;
  types: readonly CharacterType[];
  /** Whether three of the four types are enough. */
  isThreeOfFour: boolean;
  blocksIdentical: boolean;
  blocksSequential: boolean;
  /** In bytes of UTF-8. */
  maxBytes: number;
  /** How many of the last passwords must not be used again; 0 for none. */
  history: number;
  /** The passwords that are too common; undefined if that is not checked. */
  dictionary: { words: 'en_10k' | 'en_100k'; custom: readonly string[] } | undefined;
  /** The members of a user that the password must not contain. */
  blockedFields: readonly string[];
}

/** The members that are blocked if the connection names none. */
const PERSONAL = [
  ...['email', 'username', 'name', 'nickname'],
  ...['user_metadata.name', 'user_metadata.first', 'user_metadata.last'],
];

/** The longest password of the hosted service, in bytes. Longer ones are refused if the connection says so. */
const HOSTED_MAX_BYTES = 72;

const DEFAULT_LENGTH = { none: undefined, low: 6, fair: 8, good: 8, excellent: 10 } as const;

// docs/understand/decisions/passwords-protection.md#password_options-and-the-older-options-make-one-password-policy
/** Returns the policy of a connection, from `password_options` or else from the older options. */
export function passwordPolicy(options: DatabaseOptions): PasswordPolicy {
  const { password_options: flexible } = options;
  if (flexible == null) return olderPolicy(options);
  const { complexity, history, dictionary, profile_data: personal } = flexible;
  const configured = personal.blocked_fields;
  return {
    minLength: complexity.min_length,
    types: complexity.character_types,
    isThreeOfFour: complexity.character_type_rule === 'three_of_four',
    blocksIdentical: complexity.identical_characters === 'block',
    blocksSequential: complexity.sequential_characters === 'block',
    maxBytes: complexity.max_length_exceeded === 'error' ? HOSTED_MAX_BYTES : MAX_PASSWORD_LENGTH,
    history: history.active ? history.size : 0,
    dictionary: dictionary.active ? { words: dictionary.default, custom: dictionary.custom } : undefined,
    blockedFields: !personal.active ? [] : configured.length > 0 ? configured : PERSONAL,
  };
}

function olderPolicy(options: DatabaseOptions): PasswordPolicy {
  const { passwordPolicy: level, password_history: history, password_dictionary: dictionary } = options;
  const isStrong = level === 'good' || level === 'excellent';
  const isFair = level === 'fair';
  return {
    minLength: options.password_complexity_options?.min_length ?? DEFAULT_LENGTH[level],
    types: isStrong ? CHARACTER_TYPES : isFair ? CHARACTER_TYPES.filter((type) => type !== 'special') : [],
    isThreeOfFour: isStrong,
    blocksIdentical: level === 'excellent',
    blocksSequential: false,
    maxBytes: MAX_PASSWORD_LENGTH,
    history: history?.enable === true ? history.size : 0,
    dictionary: dictionary?.enable === true ? { words: 'en_10k', custom: dictionary.dictionary } : undefined,
    blockedFields: options.password_no_personal_info?.enable === true ? PERSONAL : [],
  };
}

function rulesOf(policy: PasswordPolicy): Rule[] {
  const { minLength, types, isThreeOfFour } = policy;
  const kinds = isThreeOfFour ? [containsAtLeast] : types.length > 0 ? [shouldContain(types)] : [];
  return [
    minLength === undefined ? nonEmpty : lengthAtLeast(minLength),
    ...kinds,
    ...(policy.blocksIdentical ? [identicalChars] : []),
    ...(policy.blocksSequential ? [sequentialChars] : []),
  ];
}

const wordFor = (isBlocked: boolean) => (isBlocked ? 'block' : 'allow');

/** Returns the policy of a connection as the My Account API shows it, in the form of `password_options`. */
export function publishedPolicy(options: DatabaseOptions): object {
  const policy = passwordPolicy(options);
  return {
    complexity: {
      min_length: policy.minLength ?? 1,
      character_types: policy.types,
      character_type_rule: policy.isThreeOfFour ? 'three_of_four' : 'all',
      identical_characters: wordFor(policy.blocksIdentical),
      sequential_characters: wordFor(policy.blocksSequential),
      max_length_exceeded: options.password_options?.complexity.max_length_exceeded ?? 'error',
    },
    profile_data: { active: policy.blockedFields.length > 0, blocked_fields: policy.blockedFields },
    history: { active: policy.history > 0, size: policy.history },
    dictionary: { active: policy.dictionary !== undefined, default: policy.dictionary?.words ?? 'en_10k' },
  };
}

/**
 * Returns the older options that come closest to a policy and require no more than it. Login widgets know only those, and
 * check a password by them before they send it.
 */
export function widgetPolicy(options: DatabaseOptions): {
  passwordPolicy: DatabaseOptions['passwordPolicy'];
  password_complexity_options?: { min_length: number };
} {
  const configuredLength = options.password_complexity_options?.min_length;
  if (options.password_options == null) {
    return {
      passwordPolicy: options.passwordPolicy,
      ...(configuredLength !== undefined && {
        password_complexity_options: { min_length: configuredLength },
      }),
    };
  }
  const { minLength = 1, types, isThreeOfFour, blocksIdentical } = passwordPolicy(options);
  const isFair = (['lowercase', 'uppercase', 'number'] as const).every((type) => types.includes(type));
  const strong = blocksIdentical ? 'excellent' : 'good';
  return {
    passwordPolicy: isThreeOfFour ? strong : isFair ? 'fair' : 'low',
    password_complexity_options: { min_length: minLength },
  };
}

/** @returns the verdict of every rule. */
export function checkStrength(options: DatabaseOptions, password: string): PolicyVerdict {
  const policy = passwordPolicy(options);
  const normal = normalizePassword(password);
  const rules = rulesOf(policy).map((rule) => rule(normal));
  const tooLong = maxLength(policy.maxBytes)(normal);
  // The maximum length is listed only if it is exceeded, as hardly any password does.
  const all = tooLong.verified ? rules : [...rules, tooLong];
  return { rules: all, verified: all.every((rule) => rule.verified) };
}

function ruleText({ message, format = [] }: Pick<RuleVerdict, 'message' | 'format'>): string {
  return format.reduce<string>((text, value) => text.replace(/%[ds]/, String(value)), message);
}

/** Returns the rules as Markdown bullets, for `policy` in the error body. */
export function policyText({ rules }: PolicyVerdict): string {
  return rules
    .flatMap((rule) => [`* ${ruleText(rule)}`, ...(rule.items ?? []).map((item) => ` * ${item.message}`)])
    .join('\n');
}

/** Returns whether a password is too common, by a built-in list and the connection's own. */
export function isCommon(options: DatabaseOptions, password: string): boolean {
  const { dictionary } = passwordPolicy(options);
  if (dictionary === undefined) return false;
  const lower = normalizePassword(password).toLowerCase();
  return (
    isCommonPassword(dictionary.words, lower) ||
    dictionary.custom.some((word) => normalizePassword(word).toLowerCase() === lower)
  );
}

export type PersonalInfo = Readonly<Record<string, unknown>>;

/** Shorter pieces of a name occur in too many good passwords by chance. */
const MIN_PIECE_LENGTH = 3;

/** Returns whether a password contains a member of the user that the policy blocks, whole or one of its words. */
export function containsPersonalInfo(
  options: DatabaseOptions,
  password: string,
  user: PersonalInfo,
): boolean {
  const lower = normalizePassword(password).toLowerCase();
  const pieces = passwordPolicy(options)
    .blockedFields.flatMap((field) => piecesOf(field, memberOf(user, field)))
    .map((piece) => piece.normalize('NFC').toLowerCase());
  return pieces.some((piece) => piece.length >= MIN_PIECE_LENGTH && lower.includes(piece));
}

/** Returns a member of a user by its path, such as `user_metadata.first`. */
function memberOf(user: PersonalInfo, field: string): unknown {
  return field
    .split('.')
    .reduce<unknown>(
      (value, name) =>
        typeof value === 'object' && value !== null && Object.hasOwn(value, name)
          ? (value as PersonalInfo)[name]
          : undefined,
      user,
    );
}

/** Returns the parts of a member that a password must not contain. Of an e-mail address this is the part before the `@`. */
function piecesOf(field: string, value: unknown): string[] {
  if (typeof value === 'number') return [String(value)];
  if (typeof value !== 'string') return [];
  if (field === 'email') return [value.split('@')[0] ?? value];
  if (field === 'phone_number') return [value.replace(/\D/g, '')];
  return [value, ...value.split(/\s+/)];
}

// The passwords that attackers try first, in lower case, from published lists. The list is short on purpose: a tenant can add
// its own words by the connection's `password_options.dictionary.custom`.
const WORDS = `
123456 password 12345678 qwerty 123456789 12345 1234 111111 1234567 dragon 123123 baseball abc123 football
monkey letmein 696969 shadow master 666666 qwertyuiop 123321 mustang 1234567890 michael 654321 superman
1qaz2wsx 7777777 121212 000000 qazwsx 123qwe killer trustno1 jordan jennifer zxcvbnm asdfgh hunter buster
soccer harley batman andrew tigger sunshine iloveyou 2000 charlie robert thomas hockey ranger daniel starwars
klaster 112233 george computer michelle jessica pepper 1111 zxcvbn 555555 11111111 131313 freedom 777777 pass
maggie 159753 aaaaaa ginger princess joshua cheese amanda summer love ashley nicole chelsea biteme matthew
access yankees 987654321 dallas austin thunder taylor matrix mobilemail mom monitor monitoring montana moon
moscow password1 password12 password123 password1234 passw0rd p@ssw0rd p@ssword pa$$word pa$$w0rd welcome
welcome1 welcome123 welcome2024 welcome2025 welcome2026 admin admin1 admin123 administrator root toor login
test test1 test123 test1234 testing guest default changeme changeme1 change-me secret secret1 secret123
qwerty1 qwerty12 qwerty123 qwerty1234 qwertz qwertzuiop azerty azertyuiop asdf asdf1234 asdfasdf asdfghjkl
asdfghjkl1 zaq12wsx zaq1zaq1 1q2w3e 1q2w3e4r 1q2w3e4r5t 1q2w3e4r5t6y q1w2e3r4 q1w2e3r4t5 qweasd qweasdzxc
qwe123 abcd abcd1234 abcdef abcdefg abcdefgh abc12345 a1b2c3 a1b2c3d4 aa123456 aaa111 aaaaaaaa aaaaaaaaaa
1234qwer 1234abcd 123abc 123456a 123456q 123456qwerty 12341234 12344321 123654 123789 147258 147258369 147852
159357 163.com 1a2b3c 1a2b3c4d 202020 212121 222222 232323 252525 333333 3rjs1la7qe 444444 456456 456789
52013 5201314 5555 55555 654321a 741852 741852963 789456 789456123 852456 88888888 888888 987654 99999999
999999 00000000 0000000000 0123456789 9876543210 11223344 1122334455 112358 123698745 1357924680 13579
adobe123 photoshop macromedia autocad google google123 facebook facebook1 twitter linkedin linkedin1 youtube
instagram microsoft windows apple iphone samsung android nokia internet computer1 server database oracle
mysql postgres sysadmin superuser operator support manager office company demo demo123 example sample user
user1 user123 username temp temp123 temporary public private system network security backup service
baseball1 football1 basketball soccer1 hockey1 golf tennis cricket liverpool liverpool1 arsenal chelsea1
barcelona realmadrid juventus manchester united rangers celtic steelers cowboys eagles lakers yankees1
superman1 batman1 spiderman ironman starwars1 pokemon pikachu naruto onepiece minecraft fortnite warcraft
diablo zelda mario sonic hello hello1 hello123 hellohello hola bonjour whatever nothing something anything
iloveyou1 iloveyou2 iloveu loveme lovelove loveyou love123 lover lovely sweetheart darling honey sweetie baby
babygirl babygirl1 babyboy angel angel1 angels princess1 prince queen king kingking family mother father
mommy daddy sister brother friend friends friendship forever forever1 heart rainbow flower flowers butterfly
sunflower sunshine1 moonlight starlight summer1 summer2024 summer2025 summer2026 winter winter2024 winter2025
winter2026 spring spring2024 spring2025 spring2026 autumn autumn2024 autumn2025 autumn2026 january february
march april may june july august september october november december monday tuesday wednesday thursday
friday saturday sunday dragon1 monkey1 tiger tigers lion lions eagle falcon phoenix wolf wolves panther
dolphin dolphins turtle rabbit kitty kitten puppy doggie snoopy garfield mickey donald winnie tweety scooby
shadow1 master1 killer1 hunter1 hunter2 buster1 pepper1 ginger1 maggie1 bailey cookie cookies chocolate candy
banana orange apple1 cherry peaches pumpkin coffee pizza cheese1 pickle bubbles cupcake sugar money money1
dollar million rich lucky lucky1 lucky7 winner success genius smart cool cool123 awesome amazing perfect
beautiful gorgeous handsome sexy sexy1 hottie peace peanut jesus jesus1 jesuschrist christ god godisgood
blessed faith hope grace angel123 heaven church prayer trinity michael1 jordan1 jordan23 jennifer1 jessica1
michelle1 ashley1 amanda1 nicole1 daniel1 andrew1 joshua1 matthew1 robert1 thomas1 charlie1 george1 william
william1 james james1 john john123 david david1 richard joseph anthony anthony1 christopher chris chris1
brandon brandon1 justin justin1 ryan tyler tyler1 kevin steven patrick patrick1 alexander alex alex123
benjamin samantha samantha1 elizabeth victoria stephanie natalie rachel hannah sophie emily olivia isabella
charlotte alexandra andrea maria martin martina peter sandra thomas12 stefan markus matthias passwort
passwort1 passwort123 kennwort geheim geheim123 hallo hallo123 hallo1 schatz sommer sommer2025 sommer2026
winter123 fussball motdepasse soleil doudou loulou chouchou marseille bonjour1 contrasena contraseña amor
teamo teamo1 mexico mexico1 brasil argentina espana senha senha123 mudar123 parola haslo haslo123 kochanie
polska qwerty12345 qwertyui zxcvbnm1 zxcvbnm123 poiuytrewq lkjhgfdsa mnbvcxz qazwsxedc qazwsx123 1qazxsw2
!qaz2wsx 1qaz@wsx q1w2e3 123qweasd 123qweasdzxc trustno1! letmein1 letmein123 opensesame open123 access14
godzilla gandalf mordor frodo hogwarts harrypotter matrix1 neo123 trinity1 blink182 metallica nirvana slipknot
eminem michaeljackson madonna guitar drummer music music1 dancer dance freedom1 america usa123 canada england
london london1 newyork paris berlin tokyo moscow1 russia china japan india australia chicago boston
california florida texas dallas1 denver seattle vegas diamond silver golden crystal purple yellow orange1
blue123 green123 red123 black123 blackjack hotrod camaro corvette ferrari porsche mercedes bmw123 honda toyota
yamaha harley1 mustang1 chevy chevy1 ford nascar racing turbo speed maverick ranger1 cowboy texas1 trucker
fishing hunting skater surfer sailor captain pirate ninja samurai warrior gladiator spartan knight wizard
merlin magic magic1 dragonball vegeta goku naruto1 sasuke bleach anime otaku gamer gamer1 player playboy
hacker hack1234 cracker pass1234 pass123 passpass passw0rd1 password! password1! password123! password01
password2 password11 password99 qwerty! qwerty1! admin! admin123! welcome1! welcome123! summer2025! winter2025!
aa123456789 abcd123 abcd12345 abc123456 abc1234 abc123! a123456 a12345678 a123456789 q123456 z123456 w123456
`;

/** Common passwords, in lower case. */
const COMMON_PASSWORDS: ReadonlySet<string> = new Set(WORDS.split(/\s+/).filter((word) => word !== ''));

/** What people append to a refused word, and the characters by which they replace its letters. */
const SUFFIX = /[\d!?.@#$%&*_-]{1,4}$/u;
const SUBSTITUTES: Readonly<Record<string, string>> = {
  '0': 'o',
  '1': 'i',
  '3': 'e',
  '4': 'a',
  '5': 's',
  '7': 't',
  '@': 'a',
  $: 's',
  '!': 'i',
};

/**
 * @param list `en_10k`: the words themselves; `en_100k`: also their usual variants, such as `Dr4gon!` and `monkey2019`.
 * @param password in lower case.
 */
function isCommonPassword(list: 'en_10k' | 'en_100k', password: string): boolean {
  if (COMMON_PASSWORDS.has(password)) return true;
  if (list === 'en_10k') return false;
  const bare = password.replace(SUFFIX, '');
  const spelled = (text: string) => [...text].map((one) => SUBSTITUTES[one] ?? one).join('');
  return [bare, spelled(bare), spelled(password)].some((one) => COMMON_PASSWORDS.has(one));
}

// The rules of password strength, with the hosted service's codes and messages, so that SDKs and login widgets can show which
// one failed. views/assets/page.js checks the same rules while the user types.

/** The verdict of one rule, as in `description.rules` of the error body. */
interface RuleVerdict {
  code: string;
  message: string;
  format?: (number | string)[];
  items?: { code: string; message: string; format?: (number | string)[]; verified: boolean }[];
  verified: boolean;
}

/** Checks a normalized password by one rule. */
type Rule = (password: string) => RuleVerdict;

const CLASSES = [
  { type: 'lowercase', code: 'lowerCase', message: 'lower case letters (a-z)', has: /\p{Ll}/u },
  { type: 'uppercase', code: 'upperCase', message: 'upper case letters (A-Z)', has: /\p{Lu}/u },
  { type: 'number', code: 'numbers', message: 'numbers (i.e. 0-9)', has: /\p{Nd}/u },
  {
    type: 'special',
    code: 'specialCharacters',
    message: 'special characters (e.g. !@#$%^&*)',
    has: /[^\p{L}\p{Nd}]/u,
  },
] as const;

const nonEmpty: Rule = (password) => ({
  code: 'nonEmpty',
  message: 'Non-empty password required',
  verified: password.length > 0,
});

/** Requires a minimum length. @param length in characters (code points). */
const lengthAtLeast =
  (length: number): Rule =>
  (password) => ({
    code: 'lengthAtLeast',
    message: 'At least %d characters in length',
    format: [length],
    verified: [...password].length >= length,
  });

/** Requires a maximum length. @param bytes of UTF-8. */
const maxLength =
  (bytes: number): Rule =>
  (password) => ({
    code: 'maxLength',
    message: 'At most %d bytes in length',
    format: [bytes],
    verified: Buffer.byteLength(password) <= bytes,
  });

/** Requires a character of each of the types. */
const shouldContain =
  (types: readonly CharacterType[]): Rule =>
  (password) => {
    const items = verdicts(password, types);
    return {
      code: 'shouldContain',
      message: 'Should contain:',
      items,
      verified: items.every((i) => i.verified),
    };
  };

/** Requires characters of three of the four types. */
const containsAtLeast: Rule = (password) => {
  const items = verdicts(password);
  return {
    code: 'containsAtLeast',
    message: 'Contain at least %d of the following %d types of characters:',
    format: [3, 4],
    items,
    verified: items.filter((i) => i.verified).length >= 3,
  };
};

const identicalChars: Rule = (password) => ({
  code: 'identicalChars',
  message: 'No more than %d identical characters in a row (e.g., "%s" not allowed)',
  format: [2, 'aaa'],
  verified: !/(.)\1\1/u.test(password),
});

const sequentialChars: Rule = (password) => ({
  code: 'sequentialChars',
  message: 'No more than %d sequential alphanumeric characters (e.g., "%s" not allowed)',
  format: [2, 'abc'],
  verified: !hasSequence(password),
});

/** Returns whether three ASCII letters or digits in a row are consecutive, ascending or descending. */
function hasSequence(password: string): boolean {
  return [...password].some((first, at, all) => {
    const three = [first, all[at + 1] ?? '', all[at + 2] ?? ''];
    if (!three.every((one) => /^[a-zA-Z0-9]$/.test(one))) return false;
    const [a = 0, b = 0, c = 0] = three.map((one) => one.charCodeAt(0));
    return Math.abs(b - a) === 1 && c - b === b - a;
  });
}

function verdicts(password: string, types?: readonly CharacterType[]) {
  return CLASSES.filter(({ type }) => types?.includes(type) !== false).map(({ code, message, has }) => ({
    code,
    message,
    verified: has.test(password),
  }));
}
