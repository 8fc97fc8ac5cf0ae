import{X as m,_a as p,b as o,ha as i,y as r}from"./shell.js";var t=document.getElementById("app");t&&i().finally(()=>{r(),o(m(p,{}),t)});
