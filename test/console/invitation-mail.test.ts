// The mail that invites an administrator, as a mail server receives it.
import { expect } from 'chai';
import type { Email } from 'postal-mime';
import { createAgent, readForm } from '../support/agent.ts';
import { type ConsoleAgent, openConsole, startConsole } from '../support/console.ts';
import type { TestServer } from '../support/server.ts';
import { startMailServer, type TestMailServer } from '../support/smtp.ts';
import { until } from '../support/wait-until.ts';

const ROOT = '/console/administrators';
const FORGED = 'console.evil.example';

describe('the invitation of an administrator by mail', () => {
  let mail: TestMailServer;
  let server: TestServer;
  let owner: ConsoleAgent;
  before(async () => {
    mail = await startMailServer();
    server = await startConsole({ env: { SMTP_URL: mail.url, MAIL_FROM: 'login@example.test' } });
    owner = await openConsole(server);
  });
  after(async () => {
    await server?.stop();
    await mail?.stop();
  });

  const invite = async (email: string, headers: Record<string, string> = {}) => {
    const { _csrf = '' } = readForm(await owner.get(ROOT), '_csrf').fields;
    return owner.agent.request(ROOT, { form: { email, role: 'viewer', _csrf }, headers });
  };
  const mailTo = async (address: string): Promise<Email> => {
    const found = () => mail.messages.find(({ to }) => to?.some((one) => one.address === address));
    await until(() => found() !== undefined);
    return found() as Email;
  };
  const linksIn = ({ text = '' }: Email) => text.match(/https?:\/\/\S+/g) ?? [];

  it('goes to the invited address only, with a link that is shown nowhere else and works once', async () => {
    const answer = await invite('grace@example.test');
    expect(answer.status).to.equal(303);
    const message = await mailTo('grace@example.test');
    expect(message.to?.map(({ address }) => address)).to.deep.equal(['grace@example.test']);
    expect(message.from?.address).to.equal('login@example.test');
    expect(message.subject).to.contain('You are invited to administer');
    expect(message.text).to.contain('The owner invites you');
    const [link = '', ...others] = linksIn(message);
    expect(link).to.match(/\/console\/link\?ticket=[\w-]{43}$/);
    expect(others).to.deep.equal([]);
    expect(message.html).to.contain(link.replaceAll('&', '&amp;'));
    const secret = new URL(link).searchParams.get('ticket') ?? '';
    expect(answer.text).to.not.contain(secret);
    expect((await owner.get(ROOT)).text).to.not.contain(secret);
    expect(server.logged()).to.not.contain(secret);

    const form = { name: 'Grace', password: 'Console-Horse-2', repeat: 'Console-Horse-2' };
    const accept = async () => {
      const agent = createAgent(server);
      const page = await agent.get(link);
      if (page.status !== 200) return page.status;
      const { action, fields } = readForm(page, 'ticket');
      return (await agent.request(action, { form: { ...fields, ...form } })).status;
    };
    expect(await accept()).to.equal(303);
    expect(await accept()).to.equal(400);
  });

  it('links to the console’s own address, whatever host the request names', async () => {
    for (const [at, headers] of [
      { host: FORGED },
      { 'x-forwarded-host': FORGED, 'x-forwarded-proto': 'http' },
      { forwarded: `host=${FORGED}` },
    ].entries()) {
      const address = `forged-${at}@example.test`;
      // A request that names another host may be refused; otherwise the mail must not name that host.
      if ((await invite(address, headers as Record<string, string>)).status !== 303) continue;
      const [link = ''] = linksIn(await mailTo(address));
      expect(new URL(link).origin, JSON.stringify(headers)).to.equal(new URL(server.url).origin);
    }
    await invite('last@example.test');
    await mailTo('last@example.test');
    expect(JSON.stringify(mail.messages)).to.not.contain(FORGED);
  });

  for (const [language, words] of Object.entries({
    de: ['Sie sind zur Verwaltung von', 'Einladung annehmen'],
    ar: ['أنت مدعو لإدارة', 'قبول الدعوة'],
  }))
    it(`is in ${language}, the language of the inviting administrator`, async () => {
      const address = `${language}@example.test`;
      expect((await invite(address, { 'accept-language': language })).status).to.equal(303);
      const message = await mailTo(address);
      expect(message.subject).to.contain(words[0]);
      expect(message.html).to.contain(words[1]).and.to.contain(`lang="${language}"`);
      expect(message.html?.includes('dir="rtl"')).to.equal(language === 'ar');
    });
});
