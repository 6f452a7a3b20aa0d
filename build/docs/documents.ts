// The documents that are generated: from declarations in the code the tables of docs/reference, the API and the
// hardening checklist, from headings the list of decisions.
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { HARDENING } from '../../src/commands/doctor/hardening/hardening.ts';
import type { HardeningLine } from '../../src/commands/doctor/hardening/line.ts';
import { openApi } from '../../src/features/development/development-feature.ts';
import { managementOpenApi } from '../../src/features/management/openapi.ts';
import { CLIENT_RULES } from '../../src/records/clients/client-compliance.ts';
import { BACKCHANNEL_RULES, REQUEST_RULES, TOKEN_RULES } from '../../src/records/clients/compliance.ts';
import { STANDARDS } from '../../src/records/clients/compliance-levels.ts';
import { EVENTS, FEATURES, LIMITS } from '../../src/server/features.ts';
import { describedSettings } from '../../src/settings/index.ts';
import { decisionsReadme } from './decisions.ts';
import { managementReadme } from './management.ts';
import { customTextTable } from './texts.ts';

/** The directory of the repository. */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** Returns the current content of each document, by path. */
export async function documents(): Promise<Map<string, string>> {
  const api = describedApi();
  const tables = {
    'docs/reference/events.md': ['events', eventsTable()],
    'docs/reference/fapi.md': ['rules', rulesTable()],
    'docs/reference/limits.md': ['limits', limitsTable()],
    'docs/reference/settings.md': ['settings', settingsTable()],
    'docs/understand/security.md': ['hardening', hardeningList()],
    'docs/do/tool-chain.md': [
      'tools',
      toolsTable(await readFile(`${ROOT}test/toolchain/record.json`, 'utf8')),
    ],
  } as const;
  const withTables = Object.entries(tables).map(
    async ([path, [name, table]]): Promise<[string, string]> => [
      path,
      filled(await readFile(`${ROOT}${path}`, 'utf8'), name, table),
    ],
  );
  return new Map([
    ['docs/reference/api/openapi.json', `${JSON.stringify(api, null, 2)}\n`],
    ['docs/reference/api/README.md', apiReadme(api)],
    ['docs/reference/api/management.json', `${JSON.stringify(describedManagement(), null, 2)}\n`],
    ['docs/reference/custom-texts.md', customTextTable(ROOT)],
    ['docs/understand/decisions/README.md', decisionsReadme(ROOT)],
    ['docs/reference/api/management.md', managementReadme(describedManagement())],
    ...(await Promise.all(withTables)),
  ]);
}

/** The API of a server with default settings. Its version is that of the paths, which have none. */
export function describedApi() {
  return openApi({
    version: '1',
    baseUrl: 'https://localhost:3000',
    vendorHost: 'auth0.com',
    features: FEATURES,
  });
}

/** The Management API of such a server. */
export function describedManagement() {
  return managementOpenApi('https://localhost:3000');
}

/** Returns a text with a table between the marks of a name. @throws Error when there are no such marks. */
function filled(text: string, name: string, table: string): string {
  const [begin, end] = [`<!-- ${name}: written by npm run docs -->\n`, `<!-- end of ${name} -->\n`];
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`there is no place for ${name}`);
  return `${text.slice(0, from + begin.length)}\n${table}\n${text.slice(to)}`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |\n`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('');
}

/** The rules of the levels of compliance. */
function rulesTable(): string {
  const places = {
    application: CLIENT_RULES,
    request: REQUEST_RULES,
    'request at `/bc-authorize`': BACKCHANNEL_RULES,
    'access token': TOKEN_RULES,
  };
  return table(
    ['applies to', 'rule', ...Object.values(STANDARDS)],
    Object.entries(places).flatMap(([place, rules]) =>
      rules.map(({ demand, clauses: { fapi1 = '', ciba = '', fapi2 = '', signing = '' } }) => [
        place,
        demand,
        fapi1,
        ciba,
        fapi2,
        signing,
      ]),
    ),
  );
}

/** The hardening checklist, numbered through its headings. */
function hardeningList(): string {
  let number = 0;
  const lineOf = ({ id, demand }: HardeningLine) => {
    number += 1;
    return `${number}. \`${id}\`: ${demand}\n`;
  };
  return Object.entries(HARDENING)
    .map(([heading, lines]) => `### ${heading}\n\n${lines.map(lineOf).join('')}`)
    .join('\n');
}

/** What test/toolchain/toolchain.long.ts has seen. */
function toolsTable(record: string): string {
  const seen = JSON.parse(record) as Record<
    string,
    { version: string; date: string; steps: string[]; refused: string[] }
  >;
  return table(
    ['tool', 'version', 'last tried', 'what worked', 'what was refused, as it should be'],
    Object.entries(seen).map(([name, { version, date, steps, refused }]) => [
      `\`${name}\``,
      version,
      date,
      steps.join('; '),
      refused.join('; ').replaceAll('\n', ' '),
    ]),
  );
}

function limitsTable(): string {
  return table(
    ['name', 'counted per', 'at once', 'back per minute', 'where'],
    Object.entries(LIMITS).map(([name, { per, capacity, perMinute, where }]) => [
      `\`${name}\``,
      per,
      String(capacity),
      rate(perMinute),
      where,
    ]),
  );
}

function rate(perMinute: number): string {
  const isWhole = (number: number) => Math.abs(number - Math.round(number)) < 1e-9;
  if (isWhole(perMinute)) return String(Math.round(perMinute));
  const perHour = perMinute * 60;
  return isWhole(perHour) ? `${Math.round(perHour)} an hour` : `${Math.round(perMinute * 1440)} a day`;
}

function eventsTable(): string {
  const rows = Object.entries(EVENTS).sort(([a], [b]) => (a < b ? -1 : 1));
  return table(
    ['type', 'meaning'],
    rows.map(([code, { meaning }]) => [`\`${code}\``, meaning]),
  );
}

function settingsTable(): string {
  return table(
    ['variable', 'default', 'meaning'],
    describedSettings().map(({ name, fallback, meaning }) => [`\`${name}\``, fallback, meaning]),
  );
}

interface Operation {
  summary: string;
  tags: string[];
  security?: Record<string, unknown>[];
  parameters?: { name: string; in: string; required: boolean; description?: string }[];
  requestBody?: { content: Record<string, { schema: Schema }> };
  responses: Record<string, { description?: string }>;
  'x-cors': string;
  'x-rate-limit'?: { name: string }[];
}

interface Schema {
  description?: string;
  properties?: Record<string, { description?: string; type?: string; const?: string }>;
  required?: string[];
  anyOf?: Schema[];
}

const CORS: Record<string, string> = {
  none: 'no other origin',
  applications: "the tenant's applications",
  any: 'any origin',
};

/** The API as Markdown. */
function apiReadme(api: ReturnType<typeof describedApi>): string {
  const paths = Object.entries(api.paths as Record<string, Record<string, Operation>>);
  const operations = paths.flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
  const parts = (api.tags as { name: string }[]).map(({ name }) => {
    const own = operations.filter(({ operation }) => operation.tags.includes(name));
    return `## ${name}\n\n${own.map(({ path, method, operation }) => section(method, path, operation)).join('\n')}`;
  });
  return `# The API

Every public endpoint. \`npm run docs\` writes this page from the declarations in the code. [openapi.json](openapi.json) has the same content
for programs (OpenAPI 3.1); a server in development also serves it at \`/openapi.json\`.

"Authorization: client" means that an application with a secret or a key must authenticate: by HTTP Basic, or in the body
by \`client_secret\` (RFC 6749 §2.3.1) or by \`client_assertion\` and \`client_assertion_type\` (RFC 7523 §2.2). "Scripts of" names the origins
whose scripts may call the endpoint (CORS). "Limits" names the [rate limits](../limits.md).

${parts.join('\n')}`;
}

function section(method: string, path: string, operation: Operation): string {
  const { summary, security = [], parameters = [], requestBody, responses } = operation;
  const limits = operation['x-rate-limit']?.map(({ name }) => `\`${name}\``).join(', ') ?? 'none';
  const who = security.map((one) => Object.keys(one)[0] ?? '').filter((name) => name !== '');
  const types = Object.keys(requestBody?.content ?? {});
  const [schema] = Object.values(requestBody?.content ?? {}).map((content) => content.schema);
  const rows = parameters.map(({ name, in: place, required, description = '' }) => [
    `\`${name}\``,
    place,
    required ? 'yes' : '',
    description,
  ]);
  return [
    `### ${method} ${path}\n\n${summary}.\n`,
    `Limits: ${limits}. Scripts of: ${CORS[operation['x-cors']]}.${who.length > 0 ? ` Authorization: ${who.join(' or ')}.` : ''}\n`,
    ...(rows.length > 0 ? [table(['parameter', 'in', 'required', 'meaning'], rows)] : []),
    ...(schema === undefined ? [] : [`Body (${types.join(' or ')}):\n`, ...bodyTables(schema)]),
    `${Object.entries(responses)
      .filter(([status]) => /^\d/.test(status) && status !== '429')
      .map(([status, { description }]) => `- ${status}: ${description}`)
      .join('\n')}\n`,
  ].join('\n');
}

/** Described once for all routes. */
const CLIENT_PROOFS = ['client_secret', 'client_assertion', 'client_assertion_type'];

function bodyTables(schema: Schema): string[] {
  if (schema.anyOf !== undefined) return schema.anyOf.flatMap(bodyTables);
  const rows = Object.entries(schema.properties ?? {})
    .filter(([name]) => !CLIENT_PROOFS.includes(name))
    .map(([name, one]) => [
      `\`${name}\``,
      (schema.required ?? []).includes(name) ? 'yes' : '',
      one.const === undefined ? (one.description ?? '') : `\`${one.const}\``,
    ]);
  return [
    ...(schema.description === undefined ? [] : [`${schema.description}\n`]),
    table(['field', 'required', 'meaning'], rows),
  ];
}
