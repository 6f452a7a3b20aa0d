import tls from 'node:tls';
import { expect, test } from '@playwright/test';
import { startGatehouse } from 'gatehouse/testing';
import { startApp } from '../app.js';

const ADA = { email: 'ada@example.test', password: 'A-good-Passw0rd' };

let gatehouse;
let app;
test.beforeAll(async () => {
  gatehouse = await startGatehouse({ tenant: 'config/tenant.yaml' });
  // The application is in this process, which trusts the certificate from now on.
  tls.setDefaultCACertificates([...tls.getCACertificates('default'), gatehouse.ca]);
  app = startApp({ port: 4000, issuer: gatehouse.issuer });
});
test.afterAll(async () => {
  app?.close();
  await gatehouse?.stop();
});
// Each test begins with the state of the tenant file, and with a user.
test.beforeEach(async () => {
  await gatehouse.reset();
  await gatehouse.users.create({ ...ADA, profile: { email_verified: true } });
});

async function logIn(page, password) {
  await page.goto('/');
  await page.getByRole('link', { name: 'Log in' }).click();
  await page.getByLabel('Email address').fill(ADA.email);
  await page.getByLabel('Password', { exact: true }).fill(password);
  await page.getByRole('button', { name: 'Continue', exact: true }).click();
}

test('logs in and out', async ({ page }) => {
  await logIn(page, ADA.password);
  await expect(page.getByText(`You are logged in as ${ADA.email}.`)).toBeVisible();
  await page.getByRole('link', { name: 'Log out' }).click();
  await expect(page.getByRole('link', { name: 'Log in' })).toBeVisible();
});

test('logs in with a new password after the old one was forgotten', async ({ page }) => {
  await page.goto('/login');
  await page.getByRole('link', { name: 'Forgot your password?' }).click();
  await page.getByLabel('Email address').fill(ADA.email);
  await page.getByRole('button', { name: 'Send me a link' }).click();
  const { link } = await gatehouse.inbox.latest(ADA.email);
  await page.goto(link);
  await page.getByLabel('New password', { exact: true }).fill('Another-good-Passw0rd');
  await page.getByLabel('Repeat the new password').fill('Another-good-Passw0rd');
  await page.getByRole('button', { name: 'Save the password' }).click();
  await expect(page.getByRole('heading', { name: 'Your password is saved' })).toBeVisible();
  await logIn(page, 'Another-good-Passw0rd');
  await expect(page.getByText(`You are logged in as ${ADA.email}.`)).toBeVisible();
});
