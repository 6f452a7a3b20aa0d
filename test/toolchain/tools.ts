// The tools that manage a tenant: how each is found on this machine, pointed at a server, and run.
import { execFile } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { cp, mkdir, readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const PROGRAMS = fileURLToPath(new URL('programs/', import.meta.url));

/** What a tool is pointed at. */
export interface Target {
  /** Host and port. */
  domain: string;
  clientId: string;
  clientSecret: string;
  /** The certificate authority to trust, a PEM file. */
  caFile: string;
  /** A directory for the files of this run. */
  scratch: string;
}

/** What a run showed. */
export interface Outcome {
  version: string;
  /** What was done, in order. */
  steps: string[];
  /** What the server refused, with its answer. */
  refused: string[];
}

/** A tool cannot be had on this machine; the message says how to get it. */
export class Missing extends Error {}

export interface Tool {
  name: string;
  run(target: Target): Promise<Outcome>;
}

type Env = Readonly<Record<string, string | undefined>>;

/** Runs a program. @returns its standard output. @throws Error with its output */
async function output(command: readonly string[], { cwd, env }: { cwd?: string; env: Env }): Promise<string> {
  const [program = '', ...args] = command;
  const options = { cwd, env: { ...process.env, ...env }, maxBuffer: 20_000_000, timeout: 900_000 };
  const { stdout } = await run(program, args, options).catch(
    (thrown: { message: string; stdout?: string; stderr?: string }) => {
      throw new Error(`${thrown.message}\n${thrown.stdout ?? ''}\n${thrown.stderr ?? ''}`);
    },
  );
  return stdout;
}

/** Runs a step that fetches or builds. @throws Missing with its output */
const prepared = (command: readonly string[], how: { cwd?: string; env: Env }, advice: string) =>
  output(command, how).catch((thrown: Error) => {
    throw new Missing(`${advice} (${thrown.message.split('\n').slice(0, 4).join(' ').slice(0, 300)})`);
  });

/** The variables that the tools of the hosted service read, and the authority that Go, Python and OpenSSL trust. */
const environment = ({ domain, clientId, clientSecret, caFile }: Target): Env => ({
  AUTH0_DOMAIN: domain,
  AUTH0_CLIENT_ID: clientId,
  AUTH0_CLIENT_SECRET: clientSecret,
  SSL_CERT_FILE: caFile,
});

/** Reads the lines that a program prints. */
function outcomeOf(text: string): Outcome {
  const after = (word: string) =>
    text.split('\n').flatMap((line) => (line.startsWith(`${word} `) ? [line.slice(word.length + 1)] : []));
  return { version: after('version')[0] ?? '', steps: after('step'), refused: after('refused') };
}

const python: Tool = {
  name: 'auth0-python',
  run: async (target) => {
    const program = process.env.TOOLCHAIN_PYTHON ?? 'python3';
    const advice = 'needs `pip install auth0-python`, or TOOLCHAIN_PYTHON, an interpreter that has it';
    await prepared([program, '-c', 'import auth0.management'], { env: {} }, advice);
    return outcomeOf(
      await output([program, join(PROGRAMS, 'python/manage.py')], { env: environment(target) }),
    );
  },
};

const ruby: Tool = {
  name: 'auth0 (Ruby)',
  run: async (target) => {
    const command = (process.env.TOOLCHAIN_RUBY ?? 'ruby').split(' ');
    const advice =
      'needs `gem install auth0 -v "~> 5"`, or TOOLCHAIN_RUBY, a command such as `ruby -I DIRECTORY`';
    await prepared([...command, '-e', 'require "auth0"'], { env: {} }, advice);
    const program = join(PROGRAMS, 'ruby/manage.rb');
    return outcomeOf(await output([...command, program], { env: environment(target) }));
  },
};

const go: Tool = {
  name: 'go-auth0',
  run: async (target) => {
    const [cwd, binary] = [join(target.scratch, 'go'), join(target.scratch, 'go/manage')];
    await cp(join(PROGRAMS, 'go'), cwd, { recursive: true });
    const advice = 'needs Go, and the module github.com/auth0/go-auth0';
    const env = { GOFLAGS: process.env.GOFLAGS ?? '-mod=mod' };
    await prepared(['go', 'build', '-o', binary, '.'], { cwd, env }, advice);
    return outcomeOf(await output([binary], { env: environment(target) }));
  },
};

const java: Tool = {
  name: 'com.auth0:auth0',
  run: async (target) => {
    const cwd = join(target.scratch, 'java');
    await cp(join(PROGRAMS, 'java'), cwd, { recursive: true });
    const advice = 'needs Java 17 and Maven, and com.auth0:auth0 from its repository';
    const goal = ['mvn', '-B', '-q', 'dependency:build-classpath', '-Dmdep.outputFile=classpath'];
    await prepared(goal, { cwd, env: {} }, advice);
    const store = join(cwd, 'trust.p12');
    const keystore = ['-keystore', store, '-storepass', 'changeit'];
    await output(
      ['keytool', '-importcert', '-noprompt', '-alias', 'ca', '-file', target.caFile, ...keystore],
      {
        env: {},
      },
    );
    const [, version = ''] = /<version>(\d[\d.]+)</.exec(await readFile(join(cwd, 'pom.xml'), 'utf8')) ?? [];
    const trust = [`-Djavax.net.ssl.trustStore=${store}`, '-Djavax.net.ssl.trustStorePassword=changeit'];
    const classpath = await readFile(join(cwd, 'classpath'), 'utf8');
    const command = ['java', ...trust, '-cp', classpath, join(cwd, 'Manage.java'), version];
    return outcomeOf(await output(command, { env: environment(target) }));
  },
};

/** Returns the first of these programs that there is. */
async function firstProgram(programs: readonly string[], advice: string): Promise<string> {
  for (const one of programs)
    if (await output([one, 'version'], { env: {} }).catch(() => undefined)) return one;
  throw new Missing(advice);
}

const terraform: Tool = {
  name: 'terraform-provider-auth0',
  run: async (target) => {
    // Nothing is asked of a registry: `terraform init` of any directory leaves the file below `.terraform/providers`.
    const provider = process.env.TERRAFORM_PROVIDER_AUTH0;
    if (provider === undefined) throw new Missing('needs TERRAFORM_PROVIDER_AUTH0, the file of the provider');
    const program = await firstProgram(['tofu', 'terraform'], 'needs Terraform or OpenTofu');
    const cwd = join(target.scratch, 'terraform');
    await cp(join(PROGRAMS, 'terraform'), cwd, { recursive: true });
    const rc = join(cwd, 'overrides.tfrc');
    writeFileSync(
      rc,
      `provider_installation {\n  dev_overrides { "auth0/auth0" = "${dirname(provider)}" }\n  direct {}\n}\n`,
    );
    const env = {
      ...environment(target),
      TF_CLI_CONFIG_FILE: rc,
      CHECKPOINT_DISABLE: '1',
      TF_IN_AUTOMATION: '1',
    };
    const terraformRun = (verb: string, ...more: string[]) =>
      output([program, verb, '-no-color', '-input=false', ...more], { cwd, env });
    const steps: string[] = [];
    for (const changed of ['false', 'true']) {
      const variable = `-var=changed=${changed}`;
      const applied = await terraformRun('apply', '-auto-approve', variable);
      const [, done = ''] = /Apply complete! Resources: (.*)\./.exec(applied) ?? [];
      // The exit code of a plan that is not empty is 2.
      await terraformRun('plan', '-detailed-exitcode', variable);
      steps.push(`apply: ${done}; the plan after it is empty`);
    }
    const destroyed = await terraformRun('destroy', '-auto-approve');
    steps.push(`destroy: ${/Destroy complete! Resources: (\d+)/.exec(destroyed)?.[1]} destroyed`);
    await cp(join(PROGRAMS, 'terraform-refused'), cwd, { recursive: true });
    const refusal = await terraformRun('apply', '-auto-approve').catch(({ message }: Error) => message);
    const refused = /Error: (\d{3}.*)/.exec(refusal)?.[1] ?? refusal;
    const own = JSON.parse(await output([program, 'version', '-json'], { env: {} })) as {
      terraform_version: string;
    };
    const [, version = 'unknown'] = /_v(\d[\d.]+)/.exec(basename(provider)) ?? [];
    return {
      version: `${version} with ${program} ${own.terraform_version}`,
      steps,
      refused: [`a root key of one's own: ${refused}`],
    };
  },
};

/** The commands of the vendor's command line; `{id}` is the id that the first one of each group printed. */
const COMMANDS: readonly (readonly string[])[] = [
  [
    'apps create --name CLI --type regular --callbacks https://a.example.test/cb',
    'apps update {id} --name Changed',
    'apps show {id}',
    'apps list',
    'apps delete {id} --force',
  ],
  [
    'apis create --name CLI --identifier https://cli.example.test/ --scopes read:a',
    'apis update {id} --name Changed',
    'apis list',
    'apis delete {id} --force',
  ],
  [
    'users create --name Ada --email cli@example.test --connection-name Username-Password-Authentication --password A-long-Passw0rd!',
    'users update {id} --name Changed',
    'users search --query email:cli@example.test',
    'users delete {id} --force',
  ],
  [
    'roles create --name cli --description cli',
    'roles update {id} --name changed --description changed',
    'roles list',
    'roles delete {id} --force',
  ],
  [
    'orgs create --name cli --display CLI',
    'orgs update {id} --display Changed',
    'orgs list',
    'orgs delete {id} --force',
  ],
  [
    'actions create --name cli --trigger post-login --code exports.onExecutePostLogin=async()=>{};',
    'actions deploy {id}',
    'actions list',
    'actions delete {id} --force',
  ],
  [
    'logs streams list',
    'domains list',
    'network-acl list',
    'attack-protection brute-force-protection show',
    'universal-login show',
    'tenant-settings show',
    'api get connections',
  ],
];

const commandLine: Tool = {
  name: 'auth0-cli',
  run: async (target) => {
    const program = process.env.TOOLCHAIN_AUTH0_CLI ?? 'auth0';
    const home = join(target.scratch, 'cli');
    await mkdir(home, { recursive: true });
    // Without the second variable each command is reported to the vendor's analytics.
    const env = { ...environment(target), HOME: home, XDG_CONFIG_HOME: home, AUTH0_CLI_ANALYTICS: 'false' };
    const advice =
      'needs `go install github.com/auth0/auth0-cli/cmd/auth0@latest`, or TOOLCHAIN_AUTH0_CLI, its file';
    const version = (await prepared([program, '--version'], { env }, advice)).trim().split(' ').at(-1) ?? '';
    const call = (...args: string[]) => output([program, ...args, '--no-input', '--no-color'], { env });
    const { domain, clientId, clientSecret } = target;
    await call('login', '--domain', domain, '--client-id', clientId, '--client-secret', clientSecret);
    const steps = ['login as a machine'];
    for (const group of COMMANDS) {
      let id = '';
      for (const command of group) {
        const printed = await call(
          ...command.split(' ').map((word) => (word === '{id}' ? id : word)),
          ...formOf(command),
        );
        id ||= idIn(printed);
        steps.push(command.split(/ -| \{/)[0] ?? command);
      }
    }
    return { version, steps, refused: [] };
  },
};

const formOf = (command: string) =>
  / (delete|deploy) |^ api |^universal|^domains/.test(` ${command}`) ? [] : ['--json'];

/** Returns the id in the JSON that a command printed. */
const idIn = (printed: string): string => /"(?:client_id|user_id|id)":\s*"([^"]+)"/.exec(printed)?.[1] ?? '';

export const TOOLS: readonly Tool[] = [python, go, java, ruby, terraform, commandLine];

/** Returns a new directory below another. */
export const scratchBelow = (directory: string): string => mkdtempSync(join(directory, 'toolchain-'));
