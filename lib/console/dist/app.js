import{a as o,g as r,i as m,s as i}from"./shell.js";var p=document.getElementById("app");p&&m().finally(()=>o(r(i,{}),p));
