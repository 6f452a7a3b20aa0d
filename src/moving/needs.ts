// The values that an export lacks: secrets that the hosted service does not show, and ids that the deploy tool leaves out.
import { strategyRecord } from '../records/connections/connections.ts';
import { isNamedSecret } from '../records/secrets.ts';
import { MAIL_PROVIDERS } from '../records/tenant/delivery.ts';
import { SECOND_FACTORS } from '../records/users/second-factors.ts';
import { unsetVariables } from './export.ts';
import { isFactorOff } from './second-factors.ts';
import type { Item } from './verdicts/verdict.ts';

export interface Need {
  path: readonly string[];
  /** The path and its place, for people. */
  at: string;
  /** What it is: one part of a sentence. */
  what: string;
  /** Where a person finds it. */
  find: string;
  /** The environment variable to set. */
  variable: string;
  /** What to write into the file so that the variable is read; undefined where it is read already. */
  write?: string;
}

type Wanted = Omit<Need, 'at' | 'path'> & { path: readonly string[] };

/** What exports have in place of a secret. */
const MASKED = /^(_VALUE_NOT_SHOWN_|\*{3,}|\[REDACTED\]|REDACTED|<redacted>)$/i;
/** A value that the hosted service has encrypted: the configuration of database scripts. */
const ENCRYPTED = /^2\.0\$[0-9a-f]{16,}/i;

const isMasked = (value: unknown): boolean =>
  typeof value === 'string' && (MASKED.test(value) || ENCRYPTED.test(value));
const isMissing = (value: unknown): boolean => value === undefined || value === null || value === '';

/** Returns a name for a variable. */
const variableName = (...words: string[]): string =>
  words
    .join('_')
    .normalize('NFD')
    .replaceAll(/[^A-Za-z0-9]+/g, ' ')
    .trim()
    .replaceAll(' ', '_')
    .toUpperCase();

/**
 * @param path of the object in the export.
 * @returns what the object lacks. A variable that several objects have is in each of them.
 */
export function needsOf(
  section: string,
  item: Item,
  path: readonly string[],
  name: string,
  sections: Readonly<Record<string, unknown>>,
): Omit<Need, 'at'>[] {
  const open = openValues(item, []).flatMap(({ at, variables, isWhole }): Omit<Need, 'at'>[] => {
    const [variable] = variables;
    const member = at.join('.');
    const find =
      variables.length === 0 || isNamedSecret(at.at(-1) ?? '') ? placeFor(section, item, name, at) : KEYWORDS;
    if (variable !== undefined)
      return variables.map((one) => ({
        path: [...path, ...at],
        what: isWhole ? member : `a part of ${member}`,
        find,
        variable: one,
      }));
    const made = variableName(
      section,
      name,
      ...at.map((step) => (/^\d+$/.test(step) ? `${Number(step) + 1}` : step)),
    );
    return [{ path: [...path, ...at], what: member, find, variable: made, write: `##${made}##` }];
  });
  const others = (OTHERS[section]?.(item, name, sections) ?? []).map((need) => ({
    ...need,
    path: [...path, ...need.path],
  }));
  const placeOf = (need: Omit<Need, 'at'>) => need.path.join('.');
  const withVariable = new Set(open.filter(({ write }) => write === undefined).map(placeOf));
  const said = others.filter((need) => !withVariable.has(placeOf(need)));
  // Of a masked value, its section may say more than that.
  const places = new Set(said.map(placeOf));
  return [...open.filter((need) => !places.has(placeOf(need))), ...said];
}

/** Returns the values of an object that are masked, or that lack variables. */
function openValues(
  value: unknown,
  at: readonly string[],
): { at: readonly string[]; variables: string[]; isWhole: boolean }[] {
  const variables = unsetVariables(value);
  if (variables.length > 0) return [{ at, variables, isWhole: /^unset-variable-\w+$/i.test(String(value)) }];
  if (isMasked(value)) return [{ at, variables, isWhole: true }];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, part]) => openValues(part, [...at, name]));
}

/** Where a team keeps what the deploy tool replaces. */
const KEYWORDS =
  'AUTH0_KEYWORD_REPLACE_MAPPINGS, in the config.json of the deploy tool or in its environment';

/** Returns where a person finds a value of an object. */
function placeFor(section: string, item: Item, name: string, at: readonly string[]): string {
  const member = at.at(-1) ?? '';
  if (section === 'clients') return 'the old tenant’s dashboard: Applications';
  if (section === 'connections' || section === 'databases') {
    if (member === 'client_secret' || member === 'client_id')
      return `the developer pages of the provider (${String(item.strategy)}) of ${name}`;
    return `the old tenant’s dashboard: Authentication › ${name}`;
  }
  if (section === 'actions') return `whoever wrote the Action ${name}: secrets are not shown again`;
  if (section === 'actionModules') return `whoever wrote the module ${name}: secrets are not shown again`;
  if (section === 'emailProvider') return `your account at the mail provider ${name}`;
  if (section === 'phoneProviders' || section === 'guardianFactorProviders') return `your account at ${name}`;
  if (section === 'logStreams') return `whoever runs the receiver of the log stream ${name}`;
  if (section === 'rulesConfigs') return 'whoever wrote the rules: values of variables are not shown again';
  return KEYWORDS;
}

const DIRECTORY = [
  ['LDAP_URL', 'the address of the directory', 'the connector’s config.json, beside the directory'],
  ['LDAP_BASE', 'the base of its users', 'the connector’s config.json, beside the directory'],
  ['LDAP_BIND_USER', 'the account that searches it', 'the connector’s config.json, beside the directory'],
  ['LDAP_BIND_PASSWORD', 'that account’s password', 'whoever set up the connector'],
] as const;

/** The options of strategies that need others than an id and a secret at a provider. */
const OWN_OPTIONS: Readonly<
  Record<string, readonly (readonly [member: string, what: string, find: string])[]>
> = {
  sms: [
    ['twilio_sid', 'the account that sends codes', 'Twilio’s console; or set TWILIO_ACCOUNT_SID for all'],
    ['twilio_token', 'the account’s token', 'Twilio’s console; or set TWILIO_AUTH_TOKEN for all'],
  ],
  ad: DIRECTORY,
  'auth0-adldap': DIRECTORY,
  apple: [
    ['client_id', 'the Services ID', 'Apple’s developer pages'],
    ['app_secret', 'the private key', 'Apple’s developer pages: keys are shown once, so make another'],
  ],
};

/** The names of providers of text messages, and of the hosted service's own. */
const GATEWAY = 'sms_gateway';
const TWILIO = 'twilio';
const HOSTED = 'auth0';
const ACTION = 'phone-message-hook';

/** Strategies whose provider knows the application by an id and a secret. */
const hasClient = (strategy: string): boolean => {
  const record = strategyRecord(strategy);
  return (
    record?.isUpstream === true &&
    record.takesPasswords !== true &&
    !['samlp', 'pingfederate', 'apple'].includes(strategy)
  );
};

/** Where the ids of all applications are, and what becomes of those that have none. */
const FIND_IDS =
  'an export with AUTH0_EXPORT_IDENTIFIERS=true, which has all of these ids, as have move in --identifiers and --from, or the old tenant’s dashboard: without its id an application gets another one, which it does not know';

const OTHERS: Readonly<
  Record<string, (item: Item, name: string, sections: Readonly<Record<string, unknown>>) => Wanted[]>
> = {
  clients: (item, name) => {
    const find = `the old tenant’s dashboard: Applications › its name › Settings; move in --from reads all of them there`;
    const wanted: Wanted[] = [];
    if (isMissing(item.client_id) && isMissing(item.external_client_id)) {
      const variable = variableName('client', name, 'id');
      const what = 'client_id: the application goes on unchanged only with the one that it has';
      wanted.push({
        path: ['client_id'],
        what,
        find: FIND_IDS,
        variable,
        write: `client_id: ##${variable}##`,
      });
    }
    if (isMissing(item.client_secret) && isMissing(item.external_client_id) && usesSecret(item)) {
      const variable = variableName('client', name, 'secret');
      const what = 'client_secret: the application logs in with the one that it has';
      wanted.push({ path: ['client_secret'], what, find, variable, write: `client_secret: ##${variable}##` });
    }
    return [...wanted, ...credentialNeeds(item, name)];
  },
  connections: (item, name) => {
    const strategy = String(item.strategy);
    const options = (item.options ?? {}) as Item;
    const of = (member: string, what: string, find: string): Wanted[] => {
      if (!isMissing(options[member])) return [];
      const variable = variableName('connection', name, member);
      return [{ path: ['options', member], what, find, variable, write: `${member}: ##${variable}##` }];
    };
    const provider = `the developer pages of the provider (${strategy}) of ${name}`;
    const own = OWN_OPTIONS[strategy];
    if (own !== undefined)
      return own
        .filter(([member]) => !(member.startsWith('twilio_') && options.provider === GATEWAY))
        .flatMap(([member, what, find]) => of(member, what, find));
    if (!hasClient(strategy)) return [];
    const isPublic =
      ['front_channel'].includes(String(options.type)) ||
      options.token_endpoint_auth_method === 'private_key_jwt';
    return [
      ...of(
        'client_id',
        'the id at the provider: the hosted service’s keys for trying out are not yours',
        provider,
      ),
      ...(isPublic ? [] : of('client_secret', 'the secret at the provider', provider)),
    ];
  },
  resourceServers: ({ signing_alg: alg, signing_secret: secret }, name) => {
    if (alg !== 'HS256' || !isMissing(secret)) return [];
    const variable = variableName('api', name, 'signing_secret');
    const find = `the old tenant’s dashboard: Applications › APIs › ${name}`;
    return [
      {
        path: ['signing_secret'],
        what: 'the key that access tokens are signed with',
        find,
        variable,
        write: `signing_secret: ##${variable}##`,
      },
    ];
  },
  emailProvider: ({ name, enabled }) =>
    enabled === false || MAIL_PROVIDERS.some((one) => one.name === name)
      ? []
      : [
          {
            path: ['name'],
            what: `the SMTP endpoint of ${String(name)}, with account and password`,
            find: `the documents of ${String(name)} on sending by SMTP`,
            variable: 'SMTP_URL',
          },
        ],
  actions: secretsOf,
  actionModules: secretsOf,
  rulesConfigs: (item, name) => {
    if (!isMissing(item.value)) return [];
    const variable = variableName('rules', name);
    return [
      {
        path: ['value'],
        what: 'the value of the variable',
        find: placeFor('rulesConfigs', item, name, []),
        variable,
        write: `value: ##${variable}##`,
      },
    ];
  },
  phoneProviders: ({ name }) => (name === 'twilio' ? twilioNeeds(['credentials']) : []),
  guardianFactorProviders: ({ name, provider }, _name, sections) =>
    provider === TWILIO && !isFactorOff(sections, name) && !isSentByAction(sections)
      ? twilioNeeds(['provider'])
      : [],
  guardianPhoneFactorSelectedProvider: ({ provider }, _name, sections) =>
    provider === HOSTED &&
    !isFactorOff(sections, SECOND_FACTORS.sms.name) &&
    !(Array.isArray(sections.phoneProviders) && sections.phoneProviders.length > 0)
      ? twilioNeeds(['provider'])
      : [],
  customDomains: ({ type, api_key, api_keys }, name) => {
    if (!isMissing(api_key) || !isMissing(api_keys)) return [];
    return type === 'self_managed_certs'
      ? [
          {
            path: ['api_key'],
            what: `the key by which your edge for ${name} proves itself`,
            find: 'your edge’s configuration (header cname-api-key)',
            variable: variableName('edge', name, 'api_key'),
            write: `api_key: ##${variableName('edge', name, 'api_key')}##`,
          },
        ]
      : [
          {
            path: ['domain'],
            what: `a certificate for ${name}: the hosted service made its own, whose key nobody gets`,
            find: 'your certificate authority; with TLS=proxy your proxy has it',
            variable: 'TLS_CERT and TLS_KEY',
          },
        ];
  },
};

/** Whether an Action sends the codes of second factors to phones. */
const isSentByAction = ({
  guardianPhoneFactorSelectedProvider: selected,
}: Readonly<Record<string, unknown>>) => (selected as Item | null | undefined)?.provider === ACTION;

function twilioNeeds(path: readonly string[]): Wanted[] {
  const find = 'Twilio’s console';
  return [
    { path, what: 'the account that sends text messages', find, variable: 'TWILIO_ACCOUNT_SID' },
    { path, what: 'the account’s token', find, variable: 'TWILIO_AUTH_TOKEN' },
    {
      path,
      what: 'the number or messaging service',
      find,
      variable: 'TWILIO_FROM or TWILIO_MESSAGING_SERVICE_SID',
    },
  ];
}

/** Whether an application proves who it is with a secret. */
function usesSecret(item: Item): boolean {
  if (item.token_endpoint_auth_method !== undefined && item.token_endpoint_auth_method !== null)
    return item.token_endpoint_auth_method !== 'none';
  if (item.app_type === 'spa' || item.app_type === 'native') return false;
  return Object.keys((item.client_authentication_methods ?? {}) as Item).length === 0;
}

/** Returns the public keys of which an export has only the id. */
function credentialNeeds({ client_authentication_methods: methods }: Item, name: string): Wanted[] {
  return Object.entries((methods ?? {}) as Item).flatMap(([method, value]) => {
    const credentials = ((value ?? {}) as Item).credentials;
    if (!Array.isArray(credentials)) return [];
    return credentials.flatMap((credential: unknown, index) => {
      const { pem, subject_dn: subject, id, name: called } = (credential ?? {}) as Item;
      if (!isMissing(pem) || !isMissing(subject)) return [];
      const variable = variableName('client', name, 'key', String(index + 1));
      return [
        {
          path: ['client_authentication_methods', method, 'credentials', String(index)],
          what: `the public key or certificate ${String(called ?? id ?? index + 1)}: the export has its id alone`,
          find: `whoever runs ${name}`,
          variable,
          write: `pem: "##${variable}##"`,
        },
      ];
    });
  });
}

function secretsOf({ secrets }: Item, name: string): Wanted[] {
  if (!Array.isArray(secrets)) return [];
  return secrets.flatMap((secret: unknown, index) => {
    const { name: called, value } = (secret ?? {}) as Item;
    if (!isMissing(value) && !isMasked(value)) return [];
    const variable = variableName('action', name, String(called));
    return [
      {
        path: ['secrets', String(index), 'value'],
        what: `the secret ${String(called)}`,
        find: placeFor('actions', {}, name, []),
        variable,
        write: `value: ##${variable}##`,
      },
    ];
  });
}
