// A real Chromium for tests, installed by npm only: the binary of @sparticuz/chromium, driven by playwright-core.
import { execFile } from 'node:child_process';
import { createHash, X509Certificate } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium } from 'playwright-core';
import { PATIENCE } from './wait-until.ts';

/** No background traffic: every request must be caused by the test. */
const SWITCHES = [
  // The sandbox does not work as root, as in CI containers.
  '--no-sandbox',
  '--disable-dev-shm-usage',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-domain-reliability',
  '--disable-sync',
  '--disable-quic',
  '--no-first-run',
  '--no-pings',
  '--font-render-hinting=none',
  // Pages live for seconds, so optimized recompilation of scripts takes more time than it saves.
  '--js-flags=--no-turbofan --no-maglev',
  // Only names of this machine resolve.
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE *.localhost, EXCLUDE 127.0.0.1, EXCLUDE [::1]',
];

/** A test's share of the browser: contexts that share nothing with those of other tests. */
export interface TestBrowser {
  newContext(options?: BrowserContextOptions): Promise<BrowserContext>;
  /** Closes the contexts that were opened here. */
  close(): Promise<void>;
}

/**
 * Draws no frames unless asked to, and nothing asks. Styles and layout are still computed when a script needs them;
 * drawing a page takes as much processor time as everything else. Not available on macOS.
 */
const UNDRAWN = process.platform === 'darwin' ? [] : ['--enable-begin-frame-control'];

/** The browsers of this process, by their switches. */
const browsers = new Map<string, Promise<Browser>>();

/**
 * Returns a browser, started once per process and certificate; it ends with the process or by {@link closeBrowsers}. On
 * systems other than Linux, CHROMIUM_PATH names the browser to use.
 * @param ca a certificate (PEM), such as the test server's CA, whose public key is trusted anywhere in a chain; all
 * other certificates are checked as usual.
 * @param draws whether pages are drawn. Pages that are only examined for styles and layout need not be, but nothing can
 * be clicked then, because a click waits for a frame.
 */
export async function launchBrowser(ca?: string, { draws = true } = {}): Promise<TestBrowser> {
  const switches = [
    ...SWITCHES,
    ...(draws ? [] : UNDRAWN),
    ...(ca === undefined ? [] : [`--ignore-certificate-errors-spki-list=${publicKeyHash(ca)}`]),
  ];
  const key = switches.join(' ');
  const starting = browsers.get(key) ?? launch(switches);
  browsers.set(key, starting);
  const browser = await starting;
  const contexts: BrowserContext[] = [];
  return {
    newContext: async (options) => {
      const context = await browser.newContext(options);
      context.setDefaultTimeout(PATIENCE);
      contexts.push(context);
      return context;
    },
    close: async () => {
      await Promise.all(contexts.splice(0).map((context) => context.close()));
    },
  };
}

async function launch(args: string[]): Promise<Browser> {
  const { executablePath, env } = await installation();
  return chromium.launch({ executablePath, env: { ...process.env, ...env }, args });
}

/** Ends the browsers of this process. */
export async function closeBrowsers(): Promise<void> {
  const started = [...browsers.values()];
  browsers.clear();
  for (const browser of started) await (await browser).close();
}

/** Returns the SHA-256 of a certificate's public key (SPKI, DER) in base64, as Chromium's switch expects it. */
function publicKeyHash(pem: string): string {
  const spki = new X509Certificate(pem).publicKey.export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(spki).digest('base64');
}

/** The package's own configuration looks for the font in other directories. */
const FONTS_FILE = 'gatehouse-fonts.conf';

function fontsConfiguration(home: string): string {
  const directory = (name: string) => join(home, 'fonts', name);
  return `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig><dir>${directory('fonts')}</dir><cachedir>${directory('cache')}</cachedir></fontconfig>`;
}

export interface Installation {
  executablePath: string;
  env: Record<string, string>;
}

/** Returns the browser to start, and the environment that it needs. */
export async function installation(): Promise<Installation> {
  const { CHROMIUM_PATH } = process.env;
  if (CHROMIUM_PATH !== undefined) return { executablePath: CHROMIUM_PATH, env: {} };
  const home = await unpacked();
  const executablePath = join(home, 'chromium');
  const env: Record<string, string> = {};
  // A minimal machine has no fonts; the package brings one.
  if (!existsSync('/etc/fonts/fonts.conf')) env.FONTCONFIG_FILE = join(home, 'fonts', FONTS_FILE);
  // Nor libraries such as NSS. The system's own come first because they match its C library.
  if (await lacksLibraries(executablePath)) {
    const libraries = [process.env.LD_LIBRARY_PATH, join(home, 'al2023', 'lib')];
    env.LD_LIBRARY_PATH = libraries.filter(Boolean).join(':');
  }
  return { executablePath, env };
}

/**
 * Returns the directory of this version's unpacked binary, created once per machine and user. If two test runs start
 * together, each unpacks the binary, and the first to finish is kept.
 */
async function unpacked(): Promise<string> {
  const entry = fileURLToPath(import.meta.resolve('@sparticuz/chromium'));
  const packageDir = dirname(dirname(entry));
  const { version } = createRequire(import.meta.url)(join(packageDir, 'package.json')) as { version: string };
  const home = join(tmpdir(), `gatehouse-chromium-${version}-${process.getuid?.() ?? 0}`);
  if (existsSync(home)) return home;
  const staging = await mkdtemp(`${home}-`);
  await unpackInto(staging, join(packageDir, 'bin'));
  await writeFile(join(staging, 'fonts', FONTS_FILE), fontsConfiguration(home));
  try {
    await rename(staging, home);
  } catch (thrown) {
    await rm(staging, { recursive: true });
    if (!existsSync(home)) throw thrown;
  }
  return home;
}

/** The package unpacks into the system's temporary directory, which is therefore set to ours meanwhile. */
async function unpackInto(directory: string, bin: string): Promise<void> {
  const { default: binary, inflate } = await import('@sparticuz/chromium');
  const before = process.env.TMPDIR;
  process.env.TMPDIR = directory;
  try {
    await Promise.all([binary.executablePath(bin), inflate(join(bin, 'al2023.tar.br'))]);
  } finally {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  }
}

async function lacksLibraries(executable: string): Promise<boolean> {
  const { stdout } = await promisify(execFile)('ldd', [executable]);
  return stdout.includes('not found');
}
