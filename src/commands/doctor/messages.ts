// Checks whether the mail server and the SMS provider accept the credentials.
import { checkMailServer } from '../../capabilities/delivery/mail.ts';
import { checkSmsAccount } from '../../capabilities/delivery/sms.ts';
import { smtpSettings } from '../../capabilities/delivery/transports.ts';
import type { Outbound } from '../../http/outbound/outbound.ts';
import type { TwilioAccount } from '../../records/sms-providers/sms-provider.ts';
import type { Settings } from '../../settings/index.ts';
import { type Finding, findings, messageOf } from './finding.ts';

/** Time limit for an answer, milliseconds. */
const TIMEOUT_MS = 5_000;

const mail = findings('SMTP');
const sms = findings('Twilio');

/** Connects and logs in to the mail server without sending a message. */
export async function checkMail({ mail: settings, production }: Settings): Promise<Finding> {
  if (settings === undefined) {
    const text =
      'SMTP_URL is not set: mail goes through what the tenant names, otherwise to files in the data directory';
    return production ? mail.warning(text) : mail.ok(text);
  }
  const server = smtpSettings(new URL(settings.smtpUrl));
  const address = `${server.host}:${server.port}`;
  try {
    await checkMailServer(server);
    return mail.ok(`${address} takes connections${server.user === undefined ? '' : ' and the credentials'}`);
  } catch (thrown) {
    return mail.fault(`${address}: ${messageOf(thrown)}`);
  }
}

/**
 * Asks the SMS provider for the account without sending a message. Settings that do not have Twilio's form are not
 * sent.
 */
export async function checkSms(
  { sms: settings, production }: Settings,
  outbound: Outbound,
): Promise<Finding> {
  if (settings === undefined) {
    const text = 'TWILIO_ACCOUNT_SID is not set: text messages are files in the data directory';
    return production ? sms.warning(text) : sms.ok(text);
  }
  const fault = formFault(settings);
  if (fault !== undefined) return sms.fault(fault);
  try {
    return accountFinding(await checkSmsAccount(settings, outbound, TIMEOUT_MS));
  } catch (thrown) {
    return sms.fault(`it cannot be asked for the account: ${messageOf(thrown)}`);
  }
}

/** Returns the fault of the first setting that does not have Twilio's form; undefined where all have it. */
function formFault({ accountSid, authToken, from, messagingServiceSid }: TwilioAccount): string | undefined {
  if (!/^AC[0-9a-f]{32}$/i.test(accountSid)) return 'TWILIO_ACCOUNT_SID is not AC and 32 hexadecimal digits';
  if (!/^[0-9a-f]{32}$/i.test(authToken)) return 'TWILIO_AUTH_TOKEN is not 32 hexadecimal digits';
  if (messagingServiceSid !== undefined && !/^MG[0-9a-f]{32}$/i.test(messagingServiceSid))
    return 'TWILIO_MESSAGING_SERVICE_SID is not MG and 32 hexadecimal digits';
  if (from !== undefined && !/^(\+\d{6,15}|\d{3,8}|(?=.*[A-Za-z])[A-Za-z0-9 ]{1,11})$/.test(from))
    return 'TWILIO_FROM is no phone number (+…), short code or sender name';
  return undefined;
}

function accountFinding(answer: Awaited<ReturnType<typeof checkSmsAccount>>): Finding {
  if ('state' in answer) {
    if (answer.state === 'active') return sms.ok('the account is active, and the token is accepted');
    const state = answer.state === 'suspended' || answer.state === 'closed' ? answer.state : 'not active';
    return sms.fault(`the account is ${state}: it sends no messages until Twilio's console says active`);
  }
  const { refused: status } = answer;
  if (status === 401)
    return sms.fault(
      'the account is refused (401): TWILIO_AUTH_TOKEN is not that of TWILIO_ACCOUNT_SID, or the account is suspended',
    );
  if (status === 403)
    return sms.fault(
      'the account is refused (403): TWILIO_ACCOUNT_SID is suspended or closed, or one for tests, which sends no messages',
    );
  return sms.warning(
    `it does not tell of the account (${status}): try again later, and look at TWILIO_ACCOUNT_SID`,
  );
}
