/** The top of published lists of leaked passwords with eight characters or more. */
export const commonPasswords = new Set(
  `
  00000000 01234567 0123456789 0987654321 11111111 111111111 1111111111 11223344 1122334455 112233445566 11235813
  12121212 12131415 12312312 123123123 1231231231 123321123 12341234 1234512345 12344321 123454321 1234554321 123456123456 12345678 123456789
  1234567890 12345678910 123456789a 123456789q 1234567891 12345679 1234567a 1234567q 1234567b 1234abcd 1234qwer 12345qwe 12345qwert
  123456aa 123456ab 123456abc 123456qwerty 123654789 123698745 123qweasd 123qweasdzxc 123abc123 12qwaszx 13579246810 1357924680 147258369
  147852369 159357159 159753159 1a2b3c4d 1g2w3e4r 1q1q1q1q 1q2w3e4r 1q2w3e4r5t 1q2w3e4r5t6y 1qaz1qaz 1qaz2wsx 1qaz2wsx3edc
  1qazxsw2 20202020 21212121 22222222 23456789 31415926 314159265 3.1415926 321321321 33333333 44444444 55555555 66666666 741852963 77777777
  789456123 87654321 88888888 963852741 98765432 987654321 9876543210 99999999 999999999 a1234567 a12345678 a123456789 a1b2c3d4
  a1s2d3f4 aa123456 aa12345678 abc12345 abc123456 abc123abc abcd1234 abcd12345 abcdefgh abcdefghi access14 administrator admin123 admin1234
  admin12345 admin123456 alexander alexandra amsterdam anderson angelina anything apple123 arsenal1 asd12345 asdasdasd asdf1234 asdf12345
  asdfasdf asdfgh123 asdfghjk asdfghjkl asdfjkl; asdfqwer asdqwe123 babygirl babygirl1 babylove barcelona baseball baseball1 basketball
  bailey12 bananas1 beautiful benjamin bigdaddy blackjack blink182 blue1234 bonnie12 brooklyn butterfly butthead california caroline carolina
  catherine champion changeme changeme1 changeme123 changeit charlie1 charlie123 charlotte chelsea1 chocolate chocolate1 christian christina
  christine christopher cocacola colorado computer computer1 cookie123 corvette courtney creative crystal1 darkness default1 dietcoke
  diamond1 discovery disney123 dolphin1 dolphins download dragon12 dragon123 dragonball einstein electric elephant elizabeth eminem123
  everlast explorer facebook fernando fireball firebird florence flower123 football football1 football123 forever1 forever21 freedom1
  friends1 friendship fuckyou1 fuckyou2 gangster garfield genesis1 gfhjkm123 giovanni godzilla goldfish goodluck google123 greenday guest123
  guinness hannah123 hardcore harrypotter hellohello hello123 hello1234 hello12345 hellokitty hercules hg0dcjvf iceman12 iloveme1 iloveyou
  iloveyou! iloveyou1 iloveyou12 iloveyou2 iloveyou123 infinity internet isabella jackson5 jasmine1 jennifer jennifer1 jessica1 jesus123
  jesuschrist jonathan jordan23 jordan123 juventus kawasaki killer12 killer123 kimberly kingkong lacoste1 lakers24 lavender lebron23 legolas1
  letmein1 letmein! letmein123 letmeinnow liverpool liverpool1 lollipop loveless lovelove lovely12 loveme123 loveyou1 madison1 manchester
  marlboro mariposa maverick maxwell1 mercedes metallica metallica1 michael1 michelle michelle1 microsoft midnight midnight1 minecraft
  mitchell monkey12 monkey123 monkeys1 monster1 montana1 mountain mustang1 mynoob123 naruto123 nicholas nicholas1 nintendo nirvana1 november
  october1 oliver123 p@ssw0rd p@ssword pa$$w0rd pa55word pa55w0rd pakistan paradise parola12 pass1234 pass12345 pass123456 passpass passport
  passw0rd passw0rd! passw0rd1 password password! password! password. password0 password01 password1 password1! password10 password11
  password12 password123 password1234 password12345 password123! password2 password21 password22 password3 password4 password5 password7
  password8 password9 password99 patricia peaches1 pepper12 philippe playboy1 playstation poohbear postgres portugal prince123 princess
  princess1 princess12 princess123 princesa q1w2e3r4 q1w2e3r4t5 q1w2e3r4t5y6 q1234567 qazqazqaz qazwsx12 qazwsx123 qazwsxedc qazwsxedcrfv
  qazxsw123 qqqqqqqq qwaszx123 qweasdzxc qweasd123 qweqweqwe qwer1234 qwer12345 qwerasdf qwert123 qwert1234 qwert12345 qwerty01 qwerty11
  qwerty12 qwerty123 qwerty1234 qwerty12345 qwerty123456 qwertyqwerty qwertyui qwertyuio qwertyuiop qwertyuiop1 qwertz123 rainbow1 raiders1
  rangers1 rebecca1 remember richard1 robert12 rockstar rockyou1 romantic root1234 rosebud1 runescape samantha samantha1 samsung1 samsung123
  san123456 scarface scooter1 scorpion secret12 secret123 security september serenity service1 shadow12 shadow123 simpsons skywalker slipknot
  slipknot1 snickers snowball snowboard soccer12 soccer123 softball something spiderman spiderman1 spongebob spring2024 stargate starwars
  starwars1 stephanie steelers strawberry summer12 summer123 summer2024 sunflower sunshine sunshine1 sunshine12 superman superman1 superman123
  superstar supersecret swordfish t1234567 taylor123 tennis12 terminator test1234 test12345 test123456 testtest testing1 testing123 thailand
  thomas123 thunder1 tinkerbell titanic1 tottenham trustno1 trustnoone tweety12 undertaker unknown1 valentina valentine vanessa1 vfhbyf123 victoria
  victoria1 victory1 virginia volleyball warcraft warrior1 welcome1 welcome12 welcome123 welcome1234 welcome! whatever whatever1 william1
  winston1 winter2024 wolverine wordpass xbox3600 xxxxxxxx yankees1 yellow12 zaq12wsx zaq1zaq1 zaq1xsw2 zaqwsx123 zxc12345 zxcv1234 zxcvbnm1
  zxcvbnm123 zxcvbnm, zxcvbnm,./ zxczxczxc zzzzzzzz
  `
    .trim()
    .split(/\s+/),
);
