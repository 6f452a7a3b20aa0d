// What others have to change for a move: providers, companies, and whoever has DNS, mail and apps.
import { isOwnAudience } from '../records/clients/apis.ts';
import { strategyRecord } from '../records/connections/connections.ts';
import { withMarks } from './export.ts';
import { hostOf } from './origin.ts';
import type { Item } from './verdicts/verdict.ts';

export interface Task {
  /** Who does it, or where. */
  where: string;
  /** What they do: one sentence. */
  task: string;
  /** What they need for it, to copy. */
  values: string[];
}

export interface TaskGroup {
  title: string;
  /** Why, and when; undefined if the tasks say it. */
  note?: string;
  tasks: Task[];
}

const items = (value: unknown): Item[] =>
  Array.isArray(value) ? value.filter((one): one is Item => typeof one === 'object' && one !== null) : [];
const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : [];
const record = (value: unknown): Item => (typeof value === 'object' && value !== null ? (value as Item) : {});
const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

/** @param base the origin of this server, as users will see it. */
export function tasksOf(sections: Readonly<Record<string, unknown>>, base: string): TaskGroup[] {
  const groups: TaskGroup[] = [
    {
      title: 'Identity providers: callback URLs to add',
      note: 'Add them before the day of the move, and keep the old ones until the way back is closed.',
      tasks: callbacks(sections, base),
    },
    {
      title: 'Companies with SAML connections: new metadata',
      note: 'Our entity ID, certificate and URLs are in the metadata. Logins fail until their side has it.',
      tasks: samlConnections(sections, base),
    },
    {
      title: 'SAML applications: new metadata of the identity provider',
      tasks: samlApplications(sections, base),
    },
    { title: 'DNS', tasks: domains(sections, base) },
    {
      title: 'Senders to verify',
      note: 'Mail from an address whose domain does not name your mail server (SPF, DKIM) is taken for spam.',
      tasks: senders(sections),
    },
    {
      title: 'Native applications that pin a domain',
      note: 'With the old custom domain they need nothing. Otherwise they need a release with the new domain, before the day.',
      tasks: nativeApplications(sections, base),
    },
    { title: 'APIs that verify access tokens', tasks: apis(sections, base) },
  ];
  return groups.filter(({ tasks }) => tasks.length > 0).map(withVariables);
}

/** Returns a group in which variables that are not set are written as the export has them. */
const withVariables = ({ tasks, ...group }: TaskGroup): TaskGroup => ({
  ...group,
  tasks: tasks.map(({ where, task, values }) => ({
    where: withMarks(where),
    task,
    values: values.map(withMarks),
  })),
});

function callbacks({ connections }: Readonly<Record<string, unknown>>, base: string): Task[] {
  return items(connections)
    .filter(({ strategy }) => {
      const known = strategyRecord(String(strategy));
      return known?.isUpstream === true && known.takesPasswords !== true && !isSaml(strategy);
    })
    .map(({ name, strategy, options }) => {
      const { client_id: id } = record(options);
      const which = text(id) === undefined ? '' : ` (client ${String(id)})`;
      return {
        where: `${String(strategy)}: ${String(name)}${which}`,
        task: 'add the callback URL',
        values: [`${base}/login/callback`],
      };
    });
}

/** The strategies whose provider is told where we are by our metadata. */
const SAML: readonly unknown[] = ['samlp', 'pingfederate'];
const isSaml = (strategy: unknown) => SAML.includes(strategy);

function samlConnections({ connections }: Readonly<Record<string, unknown>>, base: string): Task[] {
  return items(connections)
    .filter(({ strategy }) => isSaml(strategy))
    .map(({ name, options }) => {
      const at = encodeURIComponent(String(name));
      const { entityId, domain_aliases } = record(options);
      const domains = texts(domain_aliases);
      return {
        where: `${String(name)}${domains.length > 0 ? ` (${domains.join(', ')})` : ''}`,
        task: 'load the new metadata, or change URL and audience by hand',
        values: [
          `metadata: ${base}/samlp/metadata?connection=${at}`,
          `assertion consumer service: ${base}/login/callback?connection=${at}`,
          ...(text(entityId) === undefined ? [] : [`entity ID: ${String(entityId)}`]),
        ],
      };
    });
}

function samlApplications({ clients }: Readonly<Record<string, unknown>>, base: string): Task[] {
  return items(clients)
    .filter(({ addons }) => record(addons).samlp !== undefined && record(addons).samlp !== null)
    .map(({ name, client_id: id }) => {
      const at = text(id) === undefined ? '<client_id>' : encodeURIComponent(String(id));
      return {
        where: String(name),
        task: 'load the metadata: sign-in URL, issuer and certificate change',
        values: [`metadata: ${base}/samlp/metadata/${at}`, `sign-in URL: ${base}/samlp/${at}`],
      };
    });
}

function domains({ customDomains }: Readonly<Record<string, unknown>>, base: string): Task[] {
  const own = items(customDomains).flatMap(({ domain }) => text(domain) ?? []);
  if (own.length === 0)
    return [
      {
        where: hostOf(base),
        task: 'point the name at this server; the issuer changes, because the export has no custom domain',
        values: [`${hostOf(base)} → this server or its proxy`],
      },
    ];
  return own.map((domain) => ({
    where: domain,
    task: 'write down where its CNAME leads, or the origin and the cname-api-key of its proxy, for gatehouse move sessions --through; lower its TTL a day before; on the day, point it at this server, and leave the custom domain at the old tenant as it is. The old tenant stays reachable by its canonical name',
    values: [`${domain} → this server or its proxy`],
  }));
}

/** The domains of the senders that the hosted service gives a new tenant. */
const HOSTED_SENDERS: readonly string[] = ['auth0.com', 'auth0user.net'];
const HOSTED_SENDER =
  'write an address of your own in its place into the export: this one is the hosted service’s, and mail from it is taken for forged';

/** Returns the address of a sender such as `Acme <hello@acme.example>`. */
const addressIn = (sender: string | undefined): string[] =>
  (sender ?? '')
    .split(/[\s<>"]/)
    .filter((word) => word.includes('@'))
    .slice(0, 1);

function senders(sections: Readonly<Record<string, unknown>>): Task[] {
  const provider = record(sections.emailProvider);
  const from = [
    provider.default_from_address,
    ...items(sections.emailTemplates).map((template) => template.from),
    ...items(sections.connections).map(({ options }) => record(record(options).email).from),
  ].flatMap((value) => addressIn(text(value)));
  const mail = [...new Set(from)].map((address) => {
    const [, domain = address] = address.split('@');
    return HOSTED_SENDERS.includes(domain.toLowerCase())
      ? { where: address, task: HOSTED_SENDER, values: [] }
      : {
          where: address,
          task: 'have the mail server that you use here accept it as a sender, and its domain name that server',
          values: [`SPF and DKIM of ${domain}`],
        };
  });
  const phones = [
    ...items(sections.connections)
      .filter(({ strategy }) => strategyRecord(String(strategy))?.proves === 'phone_number')
      .map(({ options }) => record(options).from),
    ...items(sections.guardianFactorProviders).map(({ from: number }) => number),
    ...items(sections.phoneProviders).map(({ configuration }) => record(configuration).default_from),
  ].flatMap((value) => text(value) ?? []);
  const sms = [...new Set(phones)].map((number) => ({
    where: number,
    task: 'make sure that your account at the SMS provider may send from it',
    values: [],
  }));
  return [...mail, ...sms];
}

/**
 * Returns a callback with another domain, if it has one and is no web address: SDKs of native applications put the domain into
 * it (`com.example.app://DOMAIN/ios/…/callback`).
 */
function withDomain(url: string, host: string): string[] {
  const [scheme = '', rest] = url.split('://', 2);
  const [domain = ''] = (rest ?? '').split('/', 1);
  if (/^https?$/i.test(scheme) || !domain.includes('.') || rest === domain) return [];
  return [`${scheme}://${host}${(rest ?? '').slice(domain.length)}`];
}

function nativeApplications({ clients }: Readonly<Record<string, unknown>>, base: string): Task[] {
  return items(clients).flatMap(({ name, app_type, mobile, callbacks: urls }) => {
    const { ios, android } = record(mobile);
    const { team_id: team, app_bundle_identifier: bundle } = record(ios);
    const { app_package_name: pack, sha256_cert_fingerprints: prints } = record(android);
    const values = [
      ...(text(team) !== undefined && text(bundle) !== undefined
        ? [
            `associated domain webcredentials:${hostOf(base)} (${base}/apple-app-site-association names ${String(team)}.${String(bundle)})`,
          ]
        : []),
      ...(text(pack) !== undefined && texts(prints).length > 0
        ? [`app link to ${hostOf(base)} (${base}/.well-known/assetlinks.json names ${String(pack)})`]
        : []),
      ...texts(urls)
        .flatMap((url) => withDomain(url, hostOf(base)))
        .map((url) => `callback to add: ${url}`),
    ];
    if (values.length === 0 && app_type !== 'native') return [];
    return [
      {
        where: String(name),
        task: 'change the domain in the application’s settings, and its links and associations',
        values: values.length > 0 ? values : [`domain: ${hostOf(base)}`],
      },
    ];
  });
}

function apis({ resourceServers, customDomains }: Readonly<Record<string, unknown>>, base: string): Task[] {
  const own = items(resourceServers).filter(
    ({ is_system, identifier }) => is_system !== true && !isOwnAudience(String(identifier)),
  );
  const isSame = items(customDomains).some(({ domain }) => domain === hostOf(base));
  const values = isSame
    ? [`keys: ${base}/.well-known/jwks.json (the same address, other keys: caches may keep the old ones)`]
    : [`issuer: ${base}/`, `keys: ${base}/.well-known/jwks.json`];
  return own.map(({ name, identifier }) => ({
    where: `${String(name)} (${String(identifier)})`,
    task: isSame
      ? 'load the keys anew when one is unknown'
      : 'accept the new issuer beside the old one, while old tokens live',
    values,
  }));
}
