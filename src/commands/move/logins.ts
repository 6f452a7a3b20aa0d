// `gatehouse move sessions` and `move tokens`: until when who is logged in at the old tenant stays logged in here.
import { type CommandProcess, print } from '../../runtime/command-process.ts';
import type { OrderResult } from '../../server/administration/orders.ts';
import { readSettings } from '../../settings/index.ts';
import type { CommandDeclaration } from '../command.ts';
import { printState, secretOf } from './bridges.ts';

const SESSIONS_SECRET = 'MOVE_SESSIONS_SECRET';
const DOMAIN_KEY = 'MOVE_CNAME_API_KEY';
const APPLICATION_SECRET = 'MOVE_APPLICATION_SECRET';

export const moveSessions: CommandDeclaration = {
  name: 'move sessions',
  description: `send browsers without a session here to the old tenant first, without a page: who is logged in there is logged in here. It takes an application of that tenant with the callback URL <BASE_URL>/move/callback and the logout URL <BASE_URL>/logout/callback, for which all its connections are enabled; its secret is in ${SESSIONS_SECRET}, or in a file`,
  options: (command) =>
    void command
      .option('--client-id <id>', 'the application at the old tenant (not needed again later)')
      .option(
        '--client-secret-file <file>',
        `a file with the secret of the application, instead of ${SESSIONS_SECRET}`,
      )
      .option(
        '--through <host>',
        `where the custom domain led to at the hosted service, such as acme-cd-4f2k.edge.tenants.eu.auth0.com: users who logged in at it stay logged in. With self-managed certificates, the key of its proxy (cname-api-key) is in ${DOMAIN_KEY}, or in a file`,
      )
      .option('--cname-api-key-file <file>', `a file with the key, instead of ${DOMAIN_KEY}`)
      .option('--until <date>', 'the last day of it, in UTC (that of the move otherwise)')
      .option('--end', 'do not send browsers there any more'),
  run: async (
    { host, sendOrder },
    {
      clientId: client_id,
      clientSecretFile: file,
      through: name,
      cnameApiKeyFile: keyFile,
      until,
      end,
    }: {
      clientId?: string;
      clientSecretFile?: string;
      through?: string;
      cnameApiKeyFile?: string;
      until?: string;
      end?: true;
    },
  ) => {
    if (name === undefined && keyFile !== undefined)
      throw new Error('--cname-api-key-file goes with --through');
    const application = client_id && {
      client_id,
      client_secret: await secretOf(host, file, SESSIONS_SECRET),
    };
    const isByKey = keyFile !== undefined || (host.env[DOMAIN_KEY] ?? '') !== '';
    const through = name && {
      host: name,
      ...(isByKey && { cname_api_key: await secretOf(host, keyFile, DOMAIN_KEY) }),
    };
    const order = {
      command: 'moveSessions',
      ...application,
      ...(through && { through }),
      until,
      end,
    } as const;
    show(host, await sendOrder(readSettings(host.env), order));
  },
};

export const moveTokens: CommandDeclaration = {
  name: 'move tokens',
  description:
    'redeem refresh tokens that are not known here at the old tenant, once each, and give tokens of ours for them. Applications are asked about with the client ids and secrets that they have here',
  options: (command) =>
    void command
      .option('--until <date>', 'the last day of it, in UTC (that of the move otherwise)')
      .option('--application <id>', 'an application here, for the next two options')
      .option(
        '--old-client-id <id>',
        `its client id at the old tenant, where it is another one; its secret there is in ${APPLICATION_SECRET}`,
      )
      .option('--exclude', 'do not accept the tokens of that application')
      .option('--end', 'do not ask the old tenant any more'),
  run: async (
    { host, sendOrder },
    {
      until,
      application,
      oldClientId,
      exclude,
      end,
    }: { until?: string; application?: string; oldClientId?: string; exclude?: true; end?: true },
  ) => {
    if ((application === undefined) !== (oldClientId === undefined && exclude === undefined))
      throw new Error('--application goes with --old-client-id or --exclude');
    const client_secret = host.env[APPLICATION_SECRET];
    const there =
      oldClientId === undefined ? null : { client_id: oldClientId, ...(client_secret && { client_secret }) };
    const about = application !== undefined && { application: { id: application, there } };
    const order = { command: 'moveTokens', until, end, ...about } as const;
    show(host, await sendOrder(readSettings(host.env), order));
  },
};

function show(
  host: CommandProcess,
  { state, notes }: OrderResult<'moveSessions'> | OrderResult<'moveTokens'>,
): void {
  printState(host, state);
  for (const note of notes) print(host, `\n${note}`);
}
